#include "pipeline/wait_sums.h"

#include <algorithm>
#include <cmath>

namespace clrsampler {
namespace {

// Microseconds of nanoseconds, rounded so that their sum is that of all.
class Rounding {
 public:
  uint64_t operator()(double ns) {
    const auto before = static_cast<uint64_t>(std::llround(sum_ns_ / 1000));
    sum_ns_ += ns;
    return static_cast<uint64_t>(std::llround(sum_ns_ / 1000)) - before;
  }

 private:
  double sum_ns_ = 0;
};

}  // namespace

void WaitSums::Add(StackId stack, const ObservedWait& wait, bool keep) {
  main_loop_.Check();
  const bool stands_for_others = wait.stands_for > 1;
  const double ns = static_cast<double>(wait.wait_ns) * wait.stands_for;
  (stands_for_others ? sums_.sampled_ns : sums_.exact_ns) += ns;
  if (keep) {
    const MonotonicTime began{wait.ended.ns - std::min(wait.ended.ns, wait.wait_ns)};
    each_.push_back({{stack, 0, began, wait.tid, std::string(wait.comm)}, ns, stands_for_others, false});
    return;
  }
  ByStack& of_stack = by_stack_[stack];
  (stands_for_others ? of_stack.sampled_ns : of_stack.exact_ns) += ns;
}

void WaitSums::AddCpu(StackId stack, uint64_t period_ns, MonotonicTime time, uint32_t tid, absl::string_view comm,
                      bool keep) {
  main_loop_.Check();
  const auto ns = static_cast<double>(period_ns);
  sums_.cpu_ns += ns;
  if (keep) {
    each_.push_back({{stack, 0, time, tid, std::string(comm)}, ns, false, true});
  } else {
    by_stack_[stack].cpu_ns += ns;
  }
}

WaitSums::Rest WaitSums::Give(const WaitWatch::Threads& threads, const std::function<void(const Entry&)>& give) const {
  double cpu_ns = 0, waited_ns = 0, short_ns = 0;
  for (const auto& [tid, times] : threads) {
    cpu_ns += static_cast<double>(times.cpu_ns);
    waited_ns += static_cast<double>(times.blocked_ns + times.runnable_ns);
    short_ns += static_cast<double>(times.short_ns);
  }
  const double unsaid = std::max(waited_ns - short_ns - sums_.exact_ns, 0.0);
  const double of_sampled = sums_.sampled_ns > 0 ? unsaid / sums_.sampled_ns : 0;
  const double of_cpu = sums_.cpu_ns > 0 ? cpu_ns / sums_.cpu_ns : 0;
  Rounding round;
  for (const Kept& one : each_) {
    Entry entry = one.entry;
    entry.microseconds = round(one.ns * (one.cpu ? of_cpu : one.stands_for_others ? of_sampled : 1));
    give(entry);
  }
  for (const auto& [stack, sums] : by_stack_) {
    Entry entry;
    entry.stack = stack;
    entry.microseconds = round(sums.exact_ns + sums.sampled_ns * of_sampled + sums.cpu_ns * of_cpu);
    give(entry);
  }
  Rest rest;
  rest.short_us = round(short_ns);
  rest.untold_us = sums_.sampled_ns > 0 ? 0 : round(unsaid);
  return rest;
}

}  // namespace clrsampler
