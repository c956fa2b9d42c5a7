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

std::string MemoryProbe::Text(uint64_t address, size_t max_bytes) {
  constexpr uint64_t kPage = 4096;
  std::string text;
  std::array<char, 128> piece;
  while (ok() && text.size() < max_bytes) {
    const uint64_t at = address + text.size();
    const size_t count = std::min<uint64_t>({piece.size(), kPage - at % kPage, max_bytes - text.size()});
    Read(at, std::as_writable_bytes(std::span(piece.data(), count)));
    const auto* end = static_cast<const char*>(std::memchr(piece.data(), 0, count));
    text.append(piece.data(), end != nullptr ? static_cast<size_t>(end - piece.data()) : count);
    if (end != nullptr) return ok() ? text : std::string();
  }
  Fail(ProbeFailure::kContradiction, "a text without end");
  return "";
}

}  // namespace clrsampler
