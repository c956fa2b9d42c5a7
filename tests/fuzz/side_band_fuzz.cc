// Any content of a perf ring, behind a byte that says where it begins. Properties: reading ends at the head, all
// records have the size that their headers claim, where they lie in the ring changes nothing, and texts end before a
// NUL.
#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "capture/side_band_parser.h"

namespace {

using namespace clrsampler;

constexpr size_t kRingBytes = 4096;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

struct Outcome {
  std::vector<std::vector<std::byte>> records;
  uint64_t damaged = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome Read(std::span<const std::byte> content, uint64_t tail) {
  std::vector<std::byte> ring(kRingBytes);
  for (size_t i = 0; i < content.size(); ++i) ring[(tail + i) % kRingBytes] = content[i];
  Outcome outcome;
  const uint64_t head = tail + content.size();
  Require(ReadPerfRing(ring, tail, head, &outcome.damaged, [&](std::span<const std::byte> record) {
            outcome.records.emplace_back(record.begin(), record.end());
          }) == head);
  return outcome;
}

void CheckText(const std::string& text, size_t record_bytes) {
  Require(text.size() < record_bytes && text.find('\0') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> content(reinterpret_cast<const std::byte*>(data) + 1,
                                           std::min(size - 1, kRingBytes));
  const Outcome outcome = Read(content, uint64_t{data[0]} * 16);
  bool aligned = true;  // as the kernel writes them: a header never wraps
  for (const std::vector<std::byte>& record : outcome.records) {
    perf_event_header header;
    Require(record.size() >= sizeof header);
    std::memcpy(&header, record.data(), sizeof header);
    Require(header.size == record.size());
    aligned = aligned && record.size() % 8 == 0;
    const auto event = ParseSideBandRecord(record);
    if (!event.ok() || !event->has_value()) continue;
    CheckText((*event)->comm, record.size());
    CheckText((*event)->path, record.size());
  }
  if (aligned) Require(outcome == Read(content, 0));
  (void)ParseSideBandRecord(content).ok();  // whatever its header says
  return 0;
}
