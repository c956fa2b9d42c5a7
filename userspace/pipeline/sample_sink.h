// Where samples go once they have names, and with them what the hooks tell: one recording (RunProfile), or one window
// after the other (WindowBuilder).
#ifndef CLRSAMPLER_PIPELINE_SAMPLE_SINK_H_
#define CLRSAMPLER_PIPELINE_SAMPLE_SINK_H_

#include <cstdint>
#include <optional>
#include <span>

#include "clrsampler/wire.h"
#include "formats/profile/profile_model.h"
#include "formats/profile/trace_link.h"
#include "pipeline/wait_watch.h"
#include "process/process.h"
#include "profile/jit_tracker.h"
#include "profile/runtime_activity.h"
#include "profile/suspension_tracker.h"
#include "runtime_events/allocation_watch.h"
#include "runtime_events/exception_watch.h"
#include "runtime_events/pause_watch.h"
#include "symbols/frame.h"
#include "unwind/frame_chain.h"

namespace clrsampler {

inline SampleState StateOf(PausePhase phase) {
  switch (phase) {
    case PausePhase::kNone:
      return SampleState::kNone;
    case PausePhase::kStopping:
      return SampleState::kSuspending;
    case PausePhase::kStopped:
      return SampleState::kPaused;
  }
  return SampleState::kNone;
}

// Valid for the call.
struct NamedSample {
  const Process& process;
  const wire_cpu_sample& sample;
  std::span<const FrameId> frames;  // outermost first, with roles and marks
  // The work of the runtime for the thread, where one of them says so.
  std::optional<RuntimeRoleKind> role;
  uint32_t sources = 0;  // bit for each NameSource that named a frame
  PausePhase phase = PausePhase::kNone;
  StackEnd end = StackEnd::kComplete;
  uint64_t weight_ns = 0;  // the time between two samples of a CPU
  TraceLink link = {};     // not valid: the thread publishes none
};

// Main loop only; all in the order of their times.
class SampleSink {
 public:
  virtual ~SampleSink() = default;

  // Whether it is in the profile; else nobody wants it, or not yet.
  virtual bool Add(const NamedSample& sample) = 0;
  // How many samples it brings into the profile that were not before.
  virtual uint64_t AddPause(const ObservedPause& pause) = 0;
  virtual void AddCollection(ProcessKey process, const GcDone& done) = 0;
  virtual void AddCompilation(ProcessKey process, const NamedCompilation& compilation) = 0;
  // `frames` end in the compilation; `own_ns` is what was spent on it alone.
  virtual void AddCompiledStack(const Process& process, std::span<const FrameId> frames, uint64_t own_ns) = 0;
  virtual void AddWait(const ObservedWait& wait) = 0;
  // Behind the last wait of the process: what its threads did in all.
  virtual void SumUpThreads(ProcessKey process, const WaitWatch::Threads& threads) = 0;
  // Allocations, exceptions or waits of the process will come; it may have ended by then.
  virtual void Announce(const Process& process) = 0;
  virtual void AddAllocation(const ObservedAllocation& allocation) = 0;
  // Gives the factor for the allocations of the process that came since the last call.
  virtual void ScaleAllocations(ProcessKey process, double factor) = 0;
  // The same of exceptions.
  virtual void AddException(const ObservedException& exception) = 0;
  virtual void ScaleExceptions(ProcessKey process, double factor) = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_SAMPLE_SINK_H_
