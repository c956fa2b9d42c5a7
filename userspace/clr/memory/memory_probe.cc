#include "clr/memory/memory_probe.h"

#include <algorithm>

namespace clrsampler {

bool MemoryProbe::Read(uint64_t address, std::span<std::byte> into) {
  if (ok()) {
    if (reads_left_ == 0 || bytes_left_ < into.size()) {
      Fail(ProbeFailure::kContradiction, "more to follow than there can be");
    } else {
      --reads_left_;
      bytes_left_ -= into.size();
      if (memory_.Read(address, into)) return true;
      Fail(ProbeFailure::kUnreadable, "not mapped");
    }
  }
  std::fill(into.begin(), into.end(), std::byte{0});
  return false;
}

uint64_t MemoryProbe::PointerIfReadable(uint64_t address) {
  if (!ok() || reads_left_ == 0) return 0;
  --reads_left_;
  return memory_.Value<uint64_t>(address).value_or(0);
}

std::string MemoryProbe::Text(uint64_t address, size_t max_bytes) {
  constexpr uint64_t kPage = 4096;
  std::string text;
  std::array<char, 128> piece;
  while (ok() && text.size() < max_bytes) {
    const uint64_t at = address + text.size();
    const size_t count = std::min<uint64_t>({piece.size(), kPage - at % kPage, max_bytes - text.size()});
    Read(at, std::as_writable_bytes(std::span(piece.data(), count)));
    const auto piece_end = piece.begin() + count;
    const auto end = std::find(piece.begin(), piece_end, '\0');
    text.append(piece.begin(), end);
    if (end != piece_end) return ok() ? text : std::string();
  }
  Fail(ProbeFailure::kContradiction, "a text without end");
  return "";
}

}  // namespace clrsampler
