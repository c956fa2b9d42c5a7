// The waits of one window, process by process, until the times of their threads are known. A wait counts with the part
// of it that fell into the window.
#ifndef CLRSAMPLER_PIPELINE_WINDOW_WAITS_H_
#define CLRSAMPLER_PIPELINE_WINDOW_WAITS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "os/clock.h"
#include "pipeline/wait_sums.h"
#include "pipeline/wait_watch.h"
#include "process/process_key.h"
#include "profile/stack_table.h"
#include "profile/wait_times.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only.
class WindowWaits {
 public:
  struct Weighed {
    StackId stack = 0;
    uint32_t tid = 0;
    std::string comm;  // of the thread
    uint64_t ns = 0;
  };

  // The part of a wait that ended, or was looked at, in a window that began at `begin`; 0: it was in an earlier one.
  static uint64_t PartNs(const ObservedWait& wait, MonotonicTime begin);

  // `stack` belongs to the process and the wait's kind alone.
  void Add(StackId stack, const ObservedWait& wait, MonotonicTime begin);
  // All waits of the process, scaled to the times of its threads; then it has none.
  WaitTimes Take(ProcessKey process, const WaitWatch::Threads& threads,
                 const std::function<void(const Weighed&)>& give);
  void Clear() { processes_.clear(); }

 private:
  struct OfProcess {
    WaitSums sums;
    absl::flat_hash_map<StackId, WaitKind> kinds;
  };
  absl::flat_hash_map<ProcessKey, OfProcess> processes_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_WINDOW_WAITS_H_
