// Takes the events of one session, and ends it: on a signal, after its duration, or with its process.
//
// A block of a hostile stream may have hundreds of thousands of events. Signals and the time are looked at between
// events too, and events that are left when the runtime's time to end is over are not taken.
#ifndef CLRSAMPLER_PIPELINE_EVENT_PUMP_H_
#define CLRSAMPLER_PIPELINE_EVENT_PUMP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "clr/event_session.h"
#include "formats/nettrace/clr_event_stream.h"
#include "os/clock.h"
#include "pipeline/stop_events.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct EventWatchResult {
  uint64_t lost = 0;       // the runtime could not keep them
  uint64_t damaged = 0;    // their payloads are shorter than their fields
  uint64_t unsorted = 0;   // they came after newer ones
  uint64_t not_taken = 0;  // the runtime was asked to end long before
  bool broke_off = false;  // the process was gone before its last events came
  // An error: the session did not end as it should, and later events are missing. The counts above hold all the same.
  absl::Status ended;
};

// Main loop only.
class EventPump {
 public:
  static constexpr size_t kEventsPerLook = 64;
  // `since`: when the runtime has agreed. Some of what happened from then on may have come.
  using Began = absl::FunctionRef<void(MonotonicTime since)>;

  // All three outlive this. `duration_ns`: from when the events are enabled; 0: no end.
  EventPump(EventSession& session, StopEvents& stop, const Clock& clock, uint64_t duration_ns)
      : session_(session), stop_(stop), clock_(clock), duration_ns_(duration_ns) {}

  // Until the session is over and its events are given out. `began`: the events are enabled.
  EventWatchResult Run(std::span<const ClrEventKind> kinds, Began began, const ClrEventStream::Receiver& receiver);

 private:
  void SeeBeginning(Began began);
  void Look();
  void Take(const ClrEventRecord& record, const ClrEventStream::Receiver& receiver);

  EventSession& session_;
  StopEvents& stop_;
  const Clock& clock_;
  const uint64_t duration_ns_;
  std::optional<MonotonicTime> agreed_;   // the runtime has, and the stream wakes the loop
  std::optional<MonotonicTime> end_;      // once the events are enabled
  std::optional<MonotonicTime> give_up_;  // once it has been asked to end
  bool stopping_ = false;
  bool leaves_ = false;  // no event is taken any more
  size_t taken_ = 0;
  uint64_t not_taken_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_EVENT_PUMP_H_
