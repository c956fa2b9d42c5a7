#include "formats/nettrace/event_rows.h"

#include <limits>

#include "absl/status/status.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr uint16_t kMinHeaderBytes = 4 + 2 * 8;  // with the times of the first and the last row
constexpr uint16_t kCompressed = 1;
constexpr size_t kActivityBytes = 16;

// Flags of a row.
constexpr uint8_t kHasMetadata = 1;
constexpr uint8_t kHasSequence = 2;
constexpr uint8_t kHasThread = 4;
constexpr uint8_t kHasStack = 8;
constexpr uint8_t kHasActivity = 16;
constexpr uint8_t kHasRelatedActivity = 32;
constexpr uint8_t kSorted = 64;
constexpr uint8_t kHasPayloadSize = 128;

}  // namespace

absl::StatusOr<EventRows> EventRows::Of(std::span<const std::byte> block) {
  const std::optional<uint16_t> header_bytes = LoadAt<uint16_t>(block, 0);
  const std::optional<uint16_t> flags = LoadAt<uint16_t>(block, 2);
  if (!flags.has_value() || *header_bytes < kMinHeaderBytes || *header_bytes > block.size()) {
    return absl::DataLossError("a block of events has no header");
  }
  // Runtimes compress always. The plain form was written before version 4.
  if ((*flags & kCompressed) == 0) return absl::DataLossError("a block of events is not compressed");
  return EventRows(block.subspan(*header_bytes));
}

template <typename T>
T EventRows::Number() {
  constexpr int kBits = std::numeric_limits<T>::digits;
  T value = 0;
  for (int shift = 0; shift < kBits && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(rest_[0]);
    rest_ = rest_.subspan(1);
    const T bits = byte & 0x7F;
    if (kBits - shift < 7 && bits >> (kBits - shift) != 0) break;
    value |= bits << shift;
    if (byte < 0x80) return value;
  }
  whole_ = false;
  return 0;
}

void EventRows::Skip(size_t bytes) {
  if (bytes > rest_.size()) whole_ = false;
  rest_ = rest_.subspan(whole_ ? bytes : 0);
}

absl::StatusOr<std::optional<EventRow>> EventRows::Next() {
  if (!whole_) return absl::DataLossError("an event is cut off by the end of its block");
  if (rest_.empty()) return std::nullopt;
  const auto flags = static_cast<uint8_t>(rest_[0]);
  rest_ = rest_.subspan(1);
  if ((flags & kHasMetadata) != 0) row_.metadata_id = Number<uint32_t>() & 0x7FFF'FFFF;
  if ((flags & kHasSequence) != 0) {
    row_.sequence += Number<uint32_t>();
    row_.capture_thread = Number<uint64_t>();
    row_.processor = Number<uint32_t>();
  }
  if (row_.metadata_id != 0) ++row_.sequence;  // descriptions have none
  if ((flags & kHasThread) != 0) row_.thread = Number<uint64_t>();
  if ((flags & kHasStack) != 0) row_.stack_id = Number<uint32_t>();
  row_.ticks += Number<uint64_t>();
  if ((flags & kHasActivity) != 0) Skip(kActivityBytes);
  if ((flags & kHasRelatedActivity) != 0) Skip(kActivityBytes);
  row_.sorted = (flags & kSorted) != 0;
  if ((flags & kHasPayloadSize) != 0) payload_bytes_ = Number<uint32_t>();
  if (payload_bytes_ > rest_.size()) whole_ = false;
  if (!whole_) return absl::DataLossError("an event is cut off by the end of its block");
  row_.payload = rest_.first(payload_bytes_);
  rest_ = rest_.subspan(payload_bytes_);
  return row_;
}

}  // namespace clrsampler
