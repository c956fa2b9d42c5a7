#include "formats/nettrace/nettrace_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "formats/byte_reader.h"
#include "formats/nettrace/payload_fields.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kFeedBytes = 64 << 10;
constexpr uint64_t kMaxTicksPerSecond = 1'000'000'000;
constexpr size_t kMaxNameUnits = 512;  // of a provider or an event
constexpr size_t kStackBytes = 56;     // that a stack takes in the table besides its addresses, which may be half empty

// u16 year, month, day of the week, day, hour, minute, second, millisecond.
uint64_t RealtimeNs(std::span<const std::byte> content) {
  const auto field = [&](size_t i) { return LoadAt<uint16_t>(content, 2 * i).value_or(0); };
  const absl::CivilSecond second(field(0), field(1), field(3), field(4), field(5), field(6));
  const absl::Time time = absl::FromCivil(second, absl::UTCTimeZone()) + absl::Milliseconds(field(7));
  return time > absl::UnixEpoch() ? static_cast<uint64_t>(absl::ToUnixMillis(time)) * 1'000'000 : 0;
}

}  // namespace

absl::Status NettraceReader::Feed(std::span<const std::byte> bytes) {
  while (error_.ok() && !bytes.empty()) {
    const std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), kFeedBytes));
    bytes = bytes.subspan(piece.size());
    cutter_.Add(piece);
    while (error_.ok()) {
      const absl::StatusOr<std::optional<NettraceBlock>> block = cutter_.Next();
      error_ = block.status();
      if (!block.ok() || !block->has_value()) break;
      error_ = Take(**block);
    }
  }
  return error_;
}

absl::Status NettraceReader::Finish() {
  if (error_.ok() && !cutter_.ended()) error_ = absl::DataLossError("the stream of events breaks off");
  return error_;
}

absl::Status NettraceReader::Take(const NettraceBlock& block) {
  if ((block.kind == NettraceBlockKind::kTrace) != (pointer_bytes_ == 0)) {
    return absl::DataLossError("the stream of events does not begin once");
  }
  switch (block.kind) {
    case NettraceBlockKind::kTrace:
      return TakeStart(block.content);
    case NettraceBlockKind::kMetadata:
      return TakeKinds(block.content);
    case NettraceBlockKind::kEvents:
      return TakeEvents(block.content);
    case NettraceBlockKind::kStacks:
      return TakeStacks(block.content);
    case NettraceBlockKind::kSequencePoint:
      return TakeSequencePoint(block.content);
  }
  return absl::InternalError("a block of no kind");
}

absl::Status NettraceReader::TakeStart(std::span<const std::byte> content) {
  PayloadFields fields(content.subspan(16));
  NettraceStart start;
  start.realtime_ns = RealtimeNs(content);
  start.ticks = fields.Number<uint64_t>();
  start.ticks_per_second = fields.Number<uint64_t>();
  start.pointer_bytes = fields.Number<uint32_t>();
  start.pid = fields.Number<uint32_t>();
  start.processors = fields.Number<uint32_t>();
  if (!fields.ok() || start.ticks_per_second == 0 || start.ticks_per_second > kMaxTicksPerSecond ||
      (start.pointer_bytes != 4 && start.pointer_bytes != 8)) {
    return absl::DataLossError("the stream of events has no clock or no size of pointers");
  }
  pointer_bytes_ = start.pointer_bytes;
  sink_.OnStart(start);
  return absl::OkStatus();
}

absl::Status NettraceReader::TakeKinds(std::span<const std::byte> content) {
  ASSIGN_OR_RETURN(EventRows rows, EventRows::Of(content));
  while (true) {
    const absl::StatusOr<std::optional<EventRow>> row = rows.Next();
    if (!row.ok() || !row->has_value()) return row.status();
    PayloadFields fields((*row)->payload);
    NettraceMetadata kind;
    kind.id = fields.Number<uint32_t>();
    kind.provider = fields.Text(kMaxNameUnits);
    kind.event_id = fields.Number<uint32_t>();
    kind.name = fields.Text(kMaxNameUnits);
    kind.keywords = fields.Number<uint64_t>();
    kind.version = fields.Number<uint32_t>();
    kind.level = fields.Number<uint32_t>();  // the fields of the payload follow, which we know by the event's number
    if (!fields.ok() || kind.id == 0) return absl::DataLossError("a description of an event is cut off");
    if (kinds_.size() >= kMaxNettraceKinds) return absl::ResourceExhaustedError("too many kinds of events");
    const uint32_t id = kind.id;
    if (!kinds_.try_emplace(id, std::move(kind)).second) {
      return absl::DataLossError("two kinds of events have one number");
    }
  }
}

// u32 first id, u32 count; of each stack a u32 size in bytes, and addresses.
absl::Status NettraceReader::TakeStacks(std::span<const std::byte> content) {
  PayloadFields fields(content);
  const auto first = fields.Number<uint32_t>();
  const auto count = fields.Number<uint32_t>();
  for (uint32_t i = 0; i < count; ++i) {
    const std::span<const std::byte> bytes = fields.Bytes(fields.Number<uint32_t>());
    if (!fields.ok()) return absl::DataLossError("a stack is cut off");
    const StackPlace place{addresses_.size(), std::min(bytes.size() / pointer_bytes_, kMaxNettraceFrames)};
    const size_t held = (addresses_.size() + place.count) * sizeof(uint64_t) + stacks_.size() * kStackBytes;
    if (held > kMaxNettraceStackBytes) {
      return absl::ResourceExhaustedError("too many stacks without a sequence point");
    }
    for (size_t j = 0; j < place.count; ++j) {
      addresses_.push_back(pointer_bytes_ == 8 ? *LoadAt<uint64_t>(bytes, 8 * j) : *LoadAt<uint32_t>(bytes, 4 * j));
    }
    stacks_[first + i] = place;
  }
  return absl::OkStatus();
}

absl::Status NettraceReader::TakeEvents(std::span<const std::byte> content) {
  ASSIGN_OR_RETURN(EventRows rows, EventRows::Of(content));
  while (true) {
    const absl::StatusOr<std::optional<EventRow>> row = rows.Next();
    if (!row.ok() || !row->has_value()) return row.status();
    RETURN_IF_ERROR(TakeEvent(**row));
  }
}

absl::Status NettraceReader::TakeEvent(const EventRow& row) {
  const auto kind = kinds_.find(row.metadata_id);
  if (kind == kinds_.end()) return absl::DataLossError("an event of a kind that was not described");
  ASSIGN_OR_RETURN(const uint64_t lost, lost_.Came(row.capture_thread, row.sequence));
  if (lost > 0) sink_.OnLost(row.capture_thread, lost);
  NettraceEvent event;
  event.metadata = &kind->second;
  event.thread = row.thread;
  event.capture_thread = row.capture_thread;
  event.sequence = row.sequence;
  event.processor = row.processor;
  event.ticks = row.ticks;
  event.sorted = row.sorted;
  event.payload = row.payload;
  if (const auto stack = stacks_.find(row.stack_id); stack != stacks_.end()) {
    event.stack = std::span(addresses_).subspan(stack->second.begin, stack->second.count);
  }
  sink_.OnEvent(event);
  return absl::OkStatus();
}

// u64 time, u32 count of threads; of each a u64 id and the u32 number of its last event.
absl::Status NettraceReader::TakeSequencePoint(std::span<const std::byte> content) {
  PayloadFields fields(content);
  const auto ticks = fields.Number<uint64_t>();
  const auto count = fields.Number<uint32_t>();
  lost_.BeginPoint();
  for (uint32_t i = 0; i < count; ++i) {
    const auto thread = fields.Number<uint64_t>();
    const auto sequence = fields.Number<uint32_t>();
    if (!fields.ok()) return absl::DataLossError("a sequence point is cut off");
    ASSIGN_OR_RETURN(const uint64_t lost, lost_.Listed(thread, sequence));
    if (lost > 0) sink_.OnLost(thread, lost);
  }
  if (!fields.ok()) return absl::DataLossError("a sequence point is cut off");
  lost_.EndPoint();
  stacks_.clear();
  addresses_.clear();
  sink_.OnSequencePoint(ticks);
  return absl::OkStatus();
}

}  // namespace clrsampler
