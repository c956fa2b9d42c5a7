#include "formats/nettrace/clr_event_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"

namespace clrsampler {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

}  // namespace

ClrEventStream::ClrEventStream(std::span<const ClrEventKind> kinds, Receiver receiver)
    : receiver_(std::move(receiver)) {
  for (const ClrEventKind kind : kinds) kinds_.set(static_cast<size_t>(kind));
}

absl::Status ClrEventStream::Finish() {
  order_.Finish();
  return reader_.Finish();
}

void ClrEventStream::OnEvent(const NettraceEvent& event) {
  const NettraceMetadata& metadata = *event.metadata;
  if (metadata.provider != kClrProvider) return;
  absl::StatusOr<std::optional<ClrEvent>> parsed =
      ParseClrEvent(metadata.event_id, metadata.version, start_.pointer_bytes, event.payload);
  if (!parsed.ok()) ++damaged_;
  if (!parsed.ok() || !parsed->has_value() || !kinds_.test(static_cast<size_t>((*parsed)->kind))) return;
  ClrEventRecord record;
  const uint64_t tick_ns = kSecondNs / start_.ticks_per_second;  // the clock has at most 10^9 ticks a second
  record.time_ns = event.ticks * tick_ns;
  record.tid = event.thread;
  record.stack = event.stack;
  record.event = **std::move(parsed);
  receiver_(record);
}

ClrEventDemand DemandOf(std::span<const ClrEventKind> kinds) {
  ClrEventDemand all;
  for (const ClrEventKind kind : kinds) {
    const ClrEventDemand one = DemandOf(kind);
    all.keywords |= one.keywords;
    all.level = std::max(all.level, one.level);
  }
  return all;
}

}  // namespace clrsampler
