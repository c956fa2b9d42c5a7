// Numbers multiplied with one factor so that their sum is what the factor makes of the whole: what rounding takes from
// one the next one gets. Pure.
#ifndef CLRSAMPLER_PIPELINE_SCALED_SUM_H_
#define CLRSAMPLER_PIPELINE_SCALED_SUM_H_

#include <cmath>
#include <cstdint>

namespace clrsampler {

class ScaledSum {
 public:
  explicit ScaledSum(double factor) : factor_(factor) {}

  uint64_t Next(uint64_t number) {
    const auto before = static_cast<uint64_t>(std::llround(sum_));
    sum_ += static_cast<double>(number) * factor_;
    return static_cast<uint64_t>(std::llround(sum_)) - before;
  }

 private:
  const double factor_;
  double sum_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_SCALED_SUM_H_
