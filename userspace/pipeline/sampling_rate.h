// The rate of sampling as it was and is: how much time a sample stands for, and when another rate is due.
#ifndef CLRSAMPLER_PIPELINE_SAMPLING_RATE_H_
#define CLRSAMPLER_PIPELINE_SAMPLING_RATE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "os/clock.h"
#include "pipeline/rate_control.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only. A recording at one rate has that rate.
class SamplingRate {
 public:
  SamplingRate(uint32_t frequency_hz, const RateLimits& limits)
      : control_(limits), rates_({{MonotonicTime::Min(), frequency_hz}}), of_window_({frequency_hz}) {}

  uint32_t hz() const { return rates_.back().hz; }
  bool helpless() const { return control_.helpless(); }

  // About once a second. The rate that should be set now; none: what it is.
  std::optional<uint32_t> Wanted(const RateInputs& inputs);
  // The last answer of Wanted, in a sentence.
  std::string Reason(uint32_t wanted) const;
  // It has been set.
  void Changed(MonotonicTime now, uint32_t hz);

  // Between two samples of a CPU at that time.
  uint64_t PeriodAt(MonotonicTime time) const;
  // Nobody will ask about earlier times.
  void DropBefore(MonotonicTime time);

  // The rates of the window that ends now, in the order of time, at least one.
  std::vector<uint32_t> TakeWindow() { return std::exchange(of_window_, {hz()}); }

 private:
  struct Rate {
    MonotonicTime since;
    uint32_t hz = 0;
  };
  RateControl control_;
  std::deque<Rate> rates_;  // in the order of time; never empty
  std::vector<uint32_t> of_window_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_SAMPLING_RATE_H_
