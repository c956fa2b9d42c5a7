#include "pipeline/clock_account.h"

#include <algorithm>

namespace clrsampler {

void ClockAccount::Update(const HostCpuTime& host, uint64_t runs, uint64_t period_ns) {
  if (begun_ && period_ns > 0) {
    due_ += static_cast<double>(host.busy_ns - std::min(host.busy_ns, busy_ns_)) / static_cast<double>(period_ns);
  }
  if (begun_) {
    ran_ += runs - std::min(runs, runs_);
    stolen_ += host.stolen_ns - std::min(host.stolen_ns, stolen_ns_);
  }
  begun_ = true;
  busy_ns_ = host.busy_ns;
  stolen_ns_ = host.stolen_ns;
  runs_ = runs;
}

}  // namespace clrsampler
