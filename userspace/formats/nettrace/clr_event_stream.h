// From the bytes of a session's stream to events of the runtime, in the order of their times.
//
// Threads: one. Memory: that of NettraceReader and TimeOrder.
#ifndef CLRSAMPLER_FORMATS_NETTRACE_CLR_EVENT_STREAM_H_
#define CLRSAMPLER_FORMATS_NETTRACE_CLR_EVENT_STREAM_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "formats/nettrace/clr_events.h"
#include "formats/nettrace/nettrace_reader.h"
#include "formats/nettrace/nettrace_records.h"
#include "formats/nettrace/time_order.h"

namespace clrsampler {

struct ClrEventRecord {
  uint64_t time_ns = 0;             // the stream's clock: on Linux CLOCK_MONOTONIC
  uint64_t tid = 0;                 // as the kernel numbers it in the process's pid namespace
  std::span<const uint64_t> stack;  // as of NettraceEvent
  ClrEvent event;
};

class ClrEventStream : private NettraceSink {
 public:
  // The span of a record is valid until the receiver returns.
  using Receiver = std::function<void(const ClrEventRecord&)>;

  // Events of other kinds, which come by the same keywords, are passed over.
  ClrEventStream(std::span<const ClrEventKind> kinds, Receiver receiver);
  ClrEventStream(const ClrEventStream&) = delete;
  ClrEventStream& operator=(const ClrEventStream&) = delete;

  // An error is final; events before it have come or come with Finish.
  absl::Status Take(std::span<const std::byte> bytes) { return reader_.Feed(bytes); }
  // Gives out what is held. DataLoss: the stream broke off.
  absl::Status Finish();

  // Events that the runtime could not keep, of whatever kind.
  uint64_t lost() const { return lost_; }
  // Events whose payload is shorter than its fields.
  uint64_t damaged() const { return damaged_; }
  // Events that came after a newer one.
  uint64_t unsorted() const { return order_.unsorted(); }

 private:
  void OnStart(const NettraceStart& start) override { start_ = start; }
  void OnEvent(const NettraceEvent& event) override;
  void OnLost(uint64_t /*capture_thread*/, uint64_t count) override { lost_ += count; }
  void OnSequencePoint(uint64_t /*ticks*/) override {}

  std::bitset<64> kinds_;
  Receiver receiver_;
  NettraceStart start_;
  uint64_t lost_ = 0;
  uint64_t damaged_ = 0;
  TimeOrder order_{*this};
  NettraceReader reader_{order_};
};

// The keywords and the level that show a session all these kinds of events.
ClrEventDemand DemandOf(std::span<const ClrEventKind> kinds);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NETTRACE_CLR_EVENT_STREAM_H_
