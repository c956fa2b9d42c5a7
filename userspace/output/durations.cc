#include "output/durations.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_format.h"

namespace clrsampler {

std::string DurationText(uint64_t ns) {
  const double value = static_cast<double>(ns);
  if (ns < 1'000'000) return absl::StrFormat("%.0f us", value / 1e3);
  if (ns < 10'000'000) return absl::StrFormat("%.2f ms", value / 1e6);
  if (ns < 1'000'000'000) return absl::StrFormat("%.1f ms", value / 1e6);
  return absl::StrFormat("%.2f s", value / 1e9);
}

size_t DurationHistogram::StepOf(uint64_t ns) {
  if (ns < kSteps) return ns;
  const int power = std::bit_width(ns) - 1;  // from 4 on
  return static_cast<size_t>(power - 3) * kSteps + (ns >> (power - 4)) - kSteps;
}

uint64_t DurationHistogram::EndOf(size_t step) {
  if (step < kSteps) return step + 1;
  const int power = static_cast<int>(step / kSteps) + 3;
  return (step % kSteps + kSteps + 1) << (power - 4);
}

void DurationHistogram::Add(uint64_t ns) {
  ++counts_[StepOf(ns)];
  ++count_;
  sum_ns_ += ns;
  max_ns_ = std::max(max_ns_, ns);
}

uint64_t DurationHistogram::Percentile(double percent) const {
  const double wanted = static_cast<double>(count_) * percent / 100;
  uint64_t seen = 0;
  for (size_t step = 0; step < counts_.size(); ++step) {
    seen += counts_[step];
    if (seen > 0 && static_cast<double>(seen) >= wanted) return std::min(EndOf(step) - 1, max_ns_);
  }
  return max_ns_;
}

}  // namespace clrsampler
