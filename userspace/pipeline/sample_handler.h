// A sample in its turn: unwound, named as of its own time, marked with what the runtime did, counted, and given to the
// profile.
#ifndef CLRSAMPLER_PIPELINE_SAMPLE_HANDLER_H_
#define CLRSAMPLER_PIPELINE_SAMPLE_HANDLER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "clr/perf_map/perf_map_lease.h"
#include "os/clock.h"
#include "pipeline/async_callers.h"
#include "pipeline/sample_sink.h"
#include "pipeline/sample_unwinder.h"
#include "pipeline/sampling_rate.h"
#include "pipeline/stack_symbolizer.h"
#include "pipeline/thread_contexts.h"
#include "pipeline/wait_watch.h"
#include "process/process_table.h"
#include "profile/account.h"
#include "profile/code_log.h"
#include "runtime_events/runtime_watch.h"
#include "runtime_events/thread_creation_watch.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"
#include "symbols/symbolizer.h"
#include "unwind/raw_stack.h"

namespace clrsampler {

// The iteration of the main loop in which something is handled.
struct LoopIteration {
  MonotonicTime started;
  MonotonicTime horizon;     // all events up to here have been taken
  bool last_chance = false;  // the run is over: nothing waits any longer
};

// Main loop only. Borrows what it is given.
class SampleHandler {
 public:
  struct Parts {
    ProcessTable& table;
    Symbolizer& symbolizer;
    SampleUnwinder& unwinder;
    StackSymbolizer& stack_symbolizer;
    FrameTable& frames;
    const PerfMapLeases& perf_maps;
    const SamplingRate& rate;
    RuntimeWatch* hooks;                    // nullptr: there are none
    WaitWatch* waits;                       // nullptr: nobody asked
    ThreadCreationWatch* thread_creations;  // likewise
    CodeLog* code;                          // nullptr: nobody wants it
    AsyncCallers* async;                    // likewise
    const ThreadContexts& threads;
    SampleSink& sink;
    Account& account;
    Notices& notices;
  };
  // selects: whose samples count. mark_suspension: RecordOptions'.
  SampleHandler(const Parts& parts, std::function<bool(const Process&)> selects, bool mark_suspension)
      : parts_(parts), selects_(std::move(selects)), mark_suspension_(mark_suspension) {}

  // `early`: what SampleUnwinder::Observe has made of the sample. False: its names are still being read; it shall come
  // again.
  bool Handle(MonotonicTime time, const RawStack& raw, const EarlyStack& early, const LoopIteration& iteration);

  uint64_t handled() const { return handled_; }
  uint64_t named() const { return named_; }  // of these: every frame of the stack has a name

 private:
  std::span<const FrameId> WithAwaiters(const Process& process, const RawStack& raw, const UserStack& user,
                                        const NamedStack& named);
  bool HandleEvent(const Process& process, const wire_cpu_sample& sample, std::span<const FrameId> frames);
  void CountEnd(StackEnd end, uint16_t stop);  // wire_cpu_sample::stop, which may be anything in a recorded stream
  bool Write(NamedSample named);
  std::span<const FrameId> Marked(const NamedSample& named, const std::optional<RuntimeWatch::Role>& role);

  const Parts parts_;
  const std::function<bool(const Process&)> selects_;
  const bool mark_suspension_;
  std::vector<FrameId> marked_;
  uint64_t handled_ = 0, named_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_SAMPLE_HANDLER_H_
