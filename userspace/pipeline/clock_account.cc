#include "pipeline/clock_account.h"

#include <algorithm>

namespace clrsampler {

void ClockAccount::Begin(uint64_t busy_ns, uint64_t runs) {
  busy_ns_ = busy_ns;
  runs_ = runs;
  due_ = 0;
  ran_ = 0;
}

void ClockAccount::Update(uint64_t busy_ns, uint64_t runs, uint64_t period_ns) {
  if (period_ns > 0) {
    due_ += static_cast<double>(busy_ns - std::min(busy_ns, busy_ns_)) / static_cast<double>(period_ns);
  }
  ran_ += runs - std::min(runs, runs_);
  busy_ns_ = busy_ns;
  runs_ = runs;
}

}  // namespace clrsampler
