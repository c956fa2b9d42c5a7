// Where threads wait: puts the scheduler's records of waits together with their stacks and those of who ended them.
//
// A wait has two parts, the one until somebody ended it and the one until the thread had a CPU again; each is chosen by
// itself and stands for others of its kind (include/clrsampler/wire.h). The thread's sums say how much there was in
// all.
#ifndef CLRSAMPLER_PIPELINE_WAIT_WATCH_H_
#define CLRSAMPLER_PIPELINE_WAIT_WATCH_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "process/process.h"
#include "profile/wait_kind.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"

namespace clrsampler {

struct WaitWatchCounters {
  uint64_t records = 0;
  uint64_t without_stack = 0;
  uint64_t without_waker_stack = 0;  // of those that were woken by a thread whose stack was to come
  uint64_t late_stacks = 0;          // taken when the thread ran again: they say nothing about the wait
  uint64_t unsure_times = 0;         // of threads: sums that may be of an earlier stretch, and do not count

  std::map<std::string, uint64_t> ByName() const;  // as --stats writes them
};

// One part of a wait, or of one that goes on when threads are looked at. Valid for the call.
struct ObservedWait {
  ProcessKey process;
  uint32_t tid = 0;
  absl::string_view comm;  // of the thread
  MonotonicTime ended;     // this part of it, or as of when it was looked at
  WaitKind kind = WaitKind::kOther;
  uint64_t wait_ns = 0;
  double stands_for = 1;            // so many like it
  std::span<const FrameId> frames;  // outermost first, to the function that waits
  // The thread that ended it. Tid 0: an interrupt did, or it is not known, as its stack is missing or has no names.
  uint32_t waker_tgid = 0, waker_tid = 0;
  absl::string_view waker_comm;
  std::span<const FrameId> waker_frames;  // outermost first
  bool by_interrupt = false;
};

// Sums of a thread from the time that it was first seen to its last record, or since they were last taken.
struct ThreadTimes {
  std::string comm;
  MonotonicTime seen, until;
  uint64_t cpu_ns = 0, blocked_ns = 0, runnable_ns = 0;
  uint64_t short_ns = 0;  // of the latter two: waits below the threshold
  uint64_t waits = 0;
  bool ended = false;
};

// Main loop only. Borrows what it is given.
class WaitWatch {
 public:
  using OnWait = std::function<void(const ObservedWait&)>;
  WaitWatch(OnWait on_wait, FrameTable& frames) : on_wait_(std::move(on_wait)), frames_(frames) {}

  // The process's threads stood still, or were asked to, up to `ended`. A later call says more of a pause that goes on.
  void NotePause(ProcessKey key, MonotonicTime requested, MonotonicTime ended);
  // In the order of their times. `frames` is outermost first, `kernel_frames` of them are the kernel's.
  void Handle(const Process& process, const wire_wait& wait);
  void HandleStack(const Process& process, const wire_cpu_sample& sample, std::span<const FrameId> frames);
  void HandleWakerStack(const wire_cpu_sample& sample, std::span<const FrameId> frames);

  // Gives away what still waits for its stack.
  void Finish();
  // The same of one process, which runs another program from now on. The times of its threads go on.
  void EndProgram(ProcessKey key);
  // The same of one that has ended. The sums of its threads are forgotten.
  void End(ProcessKey key);

  using Threads = std::map<uint32_t, ThreadTimes>;  // by tid
  std::vector<ProcessKey> processes() const;
  // Since the last call, or of a stretch of time that begins at `from`: threads of which anything has been told. Those
  // that have ended are forgotten, as those that nothing is heard of any more.
  Threads TakeThreads(ProcessKey key, MonotonicTime from = {});
  const WaitWatchCounters& counters() const { return counters_; }

 private:
  struct Pending {
    wire_wait wait{};
    bool suspended = false;
    std::optional<WaitKind> kind;  // known from an earlier look
  };
  // A thread that waited when it was looked at: what is the same while it has not run.
  struct Standing {
    std::vector<FrameId> frames;
    WaitKind kind = WaitKind::kOther;
  };
  struct Known {
    ThreadTimes now, taken;
    bool news = false;        // since they were taken
    MonotonicTime looked_at;  // the last look that has told its wait up to then
  };
  struct Waker {
    uint64_t time_ns = 0;
    uint32_t tid = 0;
    std::vector<FrameId> frames;
    bool by_interrupt = false;
    bool kernel_is_named = false;
  };

  void NoteTimes(ProcessKey key, const wire_wait& wait);
  // The part of a wait that no look has told.
  wire_wait Untold(ProcessKey key, const wire_wait& wait);
  // Gives the kind.
  WaitKind Give(ProcessKey key, const Pending& pending, std::span<const FrameId> frames);
  const Waker* WakerOf(const wire_wait& wait) const;
  FrameId MarkFrame(absl::string_view text);
  bool WasPaused(ProcessKey key, const wire_wait& wait) const;
  // Takes off what the kernel did to switch. False: it did not, so this is no stack of a wait.
  bool TakeOffSwitch(std::vector<FrameId>& frames) const;
  WaitKind KindOf(const Pending& pending, std::span<const FrameId> frames, const Waker* waker) const;
  bool LeavesMonitor(const Waker& waker) const;

  OnWait on_wait_;
  FrameTable& frames_;
  absl::flat_hash_map<std::pair<ProcessKey, uint32_t>, Pending> pending_;
  absl::flat_hash_map<std::pair<ProcessKey, uint32_t>, Standing> standing_;
  absl::flat_hash_map<ProcessKey, std::map<uint32_t, Known>> threads_;
  struct Pause {
    MonotonicTime requested, ended;
  };
  absl::flat_hash_map<ProcessKey, std::deque<Pause>> pauses_;  // the last ones, in their order
  std::deque<Waker> wakers_;                                   // the oldest first
  WaitWatchCounters counters_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_WAIT_WATCH_H_
