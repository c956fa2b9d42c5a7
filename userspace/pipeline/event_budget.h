// How many events of hooks a continuous run takes from all processes of the host together. Pure.
//
// The kernel bounds how much one process may send (runtime_hook.bpf.h), and not how many processes do so. Beyond this
// bound the agent would spend its CPU time on them, and would have to sample less.
#ifndef CLRSAMPLER_PIPELINE_EVENT_BUDGET_H_
#define CLRSAMPLER_PIPELINE_EVENT_BUDGET_H_

#include <algorithm>
#include <cstdint>

#include "os/clock.h"

namespace clrsampler {

class EventBudget {
 public:
  EventBudget() = default;  // no limit
  // So many a second on average, and so many at once.
  EventBudget(uint32_t a_second, uint32_t at_once) : a_second_(a_second), at_once_(at_once), left_(at_once) {}

  // An event of that time, which is as much work as `weight` others. false: it is not to be taken.
  bool Take(MonotonicTime time, uint32_t weight = 1) {
    if (a_second_ == 0) return true;
    if (time > filled_) {  // events of two CPUs may cross
      const double passed = filled_ == MonotonicTime::Min() ? 0 : static_cast<double>(time.ns - filled_.ns) / 1e9;
      left_ = std::min<double>(at_once_, left_ + passed * a_second_);
      filled_ = time;
    }
    if (left_ < weight) return false;
    left_ -= weight;
    return true;
  }

 private:
  uint32_t a_second_ = 0;
  uint32_t at_once_ = 0;
  double left_ = 0;
  MonotonicTime filled_ = MonotonicTime::Min();
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_EVENT_BUDGET_H_
