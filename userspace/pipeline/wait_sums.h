// The waits of one process by stack, until the times of its threads are known. Then waits that stand for others are
// brought to what there was in all, and those that stand for themselves stay what they are.
#ifndef CLRSAMPLER_PIPELINE_WAIT_SUMS_H_
#define CLRSAMPLER_PIPELINE_WAIT_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "os/clock.h"
#include "pipeline/wait_watch.h"
#include "profile/stack_table.h"
#include "status/thread_checker.h"

namespace clrsampler {

// A value. Main loop only.
class WaitSums {
 public:
  struct Entry {
    StackId stack = 0;
    uint64_t microseconds = 0;
    MonotonicTime began = MonotonicTime::Max();  // Max: of many waits, and tid and comm are empty
    uint32_t tid = 0;
    std::string comm;
  };

  // `keep`: Give gives it by itself, else with others of its stack.
  void Add(StackId stack, const ObservedWait& wait, bool keep = false);
  // CPU time of a sample.
  void AddCpu(StackId stack, uint64_t period_ns, MonotonicTime time, uint32_t tid, absl::string_view comm,
              bool keep = false);
  size_t kept() const { return each_.size(); }

  // All of it, scaled. Sums are exact: what rounding takes from one the next one gets.
  struct Rest {
    uint64_t short_us = 0;   // waits below the threshold
    uint64_t untold_us = 0;  // of longer ones: nothing that stands for them was told
  };
  Rest Give(const WaitWatch::Threads& threads, const std::function<void(const Entry&)>& give) const;

 private:
  struct Kept {
    Entry entry;
    double ns = 0;
    bool stands_for_others = false;
    bool cpu = false;
  };
  struct ByStack {
    double exact_ns = 0, sampled_ns = 0, cpu_ns = 0;
  };

  std::vector<Kept> each_;
  std::map<StackId, ByStack> by_stack_;  // in an order that does not depend on the run: a replay rounds alike
  ByStack sums_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_WAIT_SUMS_H_
