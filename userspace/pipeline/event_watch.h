// The events of one .NET process, by a session of its runtime: no BPF, and no rights but those of the process's user.
#ifndef CLRSAMPLER_PIPELINE_EVENT_WATCH_H_
#define CLRSAMPLER_PIPELINE_EVENT_WATCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/nettrace/clr_event_stream.h"
#include "pipeline/event_pump.h"
#include "process/file_broker.h"
#include "sandbox/sandbox.h"

namespace clrsampler {

// Ctrl-Z has no effect from now on, in this process and in those that it makes. A runtime that exits waits, without a
// limit, until its last events are taken: a watcher that the terminal has stopped would hold it up.
void IgnoreStopsOfTerminal();

struct EventWatchOptions {
  uint32_t pid = 0;
  std::vector<ClrEventKind> kinds;
  uint64_t duration_ns = 0;  // from when the events are enabled; 0: until a signal comes or the process ends
  uint32_t buffer_megabytes = 16;
  bool stacks = false;
  FileBroker* files = nullptr;  // as TargetFiles'; outlives the call
  AgentNeeds needs = {};        // what the caller does besides
  // Called once rights are given up, before the runtime is asked; may be empty.
  std::function<void()> prepare = nullptr;
};

// `began` is called when the events are enabled, and `receiver` for each event, in the order of their times. An error
// is a sentence with a hint: the process is not there, or has no such socket, or it is another user's. So is `ended`:
// the process refuses, does not answer or speaks nonsense. Events that came before it have been given out. Once a
// process: it gives rights up.
absl::StatusOr<EventWatchResult> WatchEvents(const EventWatchOptions& options, EventPump::Began began,
                                             ClrEventStream::Receiver receiver);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_EVENT_WATCH_H_
