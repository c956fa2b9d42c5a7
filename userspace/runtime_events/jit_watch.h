// Tells which methods a .NET process compiles, for how long and on whose behalf. It puts the events of hooks together
// to compilations (profile/jit_tracker.h) and gives them their names. These come from the same sources as those of
// frames: a compilation is called what a frame in its code is called.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_JIT_WATCH_H_
#define CLRSAMPLER_RUNTIME_EVENTS_JIT_WATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "clrsampler/wire.h"
#include "formats/names/frame_text.h"
#include "os/clock.h"
#include "process/process.h"
#include "profile/jit_start.h"
#include "profile/jit_tracker.h"
#include "profile/runtime_activity.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"
#include "symbols/symbolizer.h"

namespace clrsampler {

struct JitWatchCounters {
  JitCounters jit;  // of all processes
  uint64_t without_name = 0;
  uint64_t without_stack = 0;
  uint64_t total_ns = 0;
  std::map<std::string, uint64_t> by_tier;

  std::map<std::string, uint64_t> ByName() const;  // as --stats writes them
};

// An event between its arrival and its turn.
struct CompiledEvent {
  wire_compiled event{};
  MonotonicTime arrived;
  uint64_t number = 0;                 // RuntimeRole::compilation
  std::optional<MonotonicTime> start;  // as its stack says
};

// Main loop only. Borrows what it is given.
class JitWatch {
 public:
  struct Callbacks {
    std::function<void(ProcessKey, const NamedCompilation&)> on_compilation;
    // With stacks: the time that was spent on this compilation alone, for a stack that ends in it.
    std::function<void(const Process&, std::span<const FrameId> frames, uint64_t own_ns)> on_stack;
  };
  JitWatch(Callbacks callbacks, bool stacks, NameStyle names, Symbolizer& symbolizer, FrameTable& frames,
           const Clock& clock);

  // Events that have left the ring; their turn (Handle) comes later.
  void Began(const wire_runtime_event& event, RuntimeActivity& activity);
  // `start`: of the process's runtime, or nullptr; it tells nothing of what began before `sees_all_since`, since
  // compilations within that may not have been seen.
  CompiledEvent Ended(const Process& process, const wire_compiled& event, const JitStart* start,
                      MonotonicTime sees_all_since, RuntimeActivity& activity);

  // In the order of their times.
  void HandleBegin(const Process& process, const wire_runtime_event& event);
  void HandleEnd(const Process& process, const CompiledEvent& compiled, JitStart* start);
  // The stack of the compilation that the thread has ended last; `frames` is outermost first.
  void HandleStack(const Process& process, const wire_cpu_sample& sample, std::span<const FrameId> frames);

  // "[jit Shop.Order.Total OptimizedTier1]", for RuntimeRole::compilation; nullopt: not known any more.
  std::optional<FrameId> RoleOf(const Process& process, uint64_t number);

  // Events are missing here: what is under way is none that can be told.
  void Cut(ProcessKey key);
  // Its program is over. A compilation that waits for its stack is given away.
  void End(ProcessKey key);
  void Finish();  // of all processes
  JitWatchCounters counters() const;

 private:
  // A method's code that was compiled a moment ago.
  struct Fresh {
    CompiledEvent compiled;
    std::optional<FrameId> role;
  };
  struct ProcessState {
    JitTracker tracker;
    std::map<uint64_t, Fresh> fresh;          // by number
    std::optional<NamedCompilation> waiting;  // for its stack
  };
  bool reports() const { return stacks_ || callbacks_.on_compilation; }

  static constexpr size_t kMaxFresh = 1 << 14;
  static constexpr uint64_t kFreshNs = 3'000'000'000;  // longer than a sample waits

  // The code's frame as of the moment when the event arrived: it had just been written then.
  Frame NameOf(const Process& process, const CompiledEvent& compiled);
  // Both are on the account of the process.
  FrameId RoleFrame(const Process& process, const Frame& method, absl::string_view tier);
  FrameId ThreadFrame(const Process& process, const std::string& text);
  void Report(ProcessKey process, const NamedCompilation& observed);

  Callbacks callbacks_;
  const bool stacks_;
  const NameStyle names_;
  Symbolizer& symbolizer_;
  FrameTable& frames_;
  const Clock& clock_;
  absl::flat_hash_map<ProcessKey, std::unique_ptr<ProcessState>> states_;
  uint64_t next_number_ = 1;
  JitWatchCounters counters_;  // `jit`: of processes that have ended
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_JIT_WATCH_H_
