#include "pipeline/clock_account.h"

#include <algorithm>

namespace clrsampler {

void ClockAccount::Update(uint64_t busy_ns, uint64_t runs, uint64_t period_ns) {
  if (begun_ && period_ns > 0) {
    due_ += static_cast<double>(busy_ns - std::min(busy_ns, busy_ns_)) / static_cast<double>(period_ns);
  }
  if (begun_) ran_ += runs - std::min(runs, runs_);
  begun_ = true;
  busy_ns_ = busy_ns;
  runs_ = runs;
}

}  // namespace clrsampler
