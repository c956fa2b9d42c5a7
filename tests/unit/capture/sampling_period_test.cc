#include "capture/sampling_period.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

namespace clrsampler {
namespace {

constexpr double kWork = 0.1;  // of each beat
constexpr int kBeats[] = {1, 2, 3, 4, 5, 8, 10, 16, 20, 24, 25, 30, 50, 60, 100, 125, 144, 250, 500, 1000};

// A program works for a tenth of each beat, at any place in the beat. Gives the largest error of its share in so many
// seconds, as a part of the share.
double WorstError(double period_s, double seconds, int beats_a_second) {
  const auto count = static_cast<size_t>(seconds / period_s);
  std::vector<double> phases(count);
  for (size_t i = 0; i < count; ++i) {
    const double beats = static_cast<double>(i) * period_s * beats_a_second;
    phases[i] = beats - std::floor(beats);
  }
  std::sort(phases.begin(), phases.end());
  for (size_t i = 0; i < count; ++i) phases.push_back(phases[i] + 1);
  size_t most = 0;
  size_t fewest = count;
  for (size_t i = 0; i < count; ++i) {
    const auto begin = phases.begin() + static_cast<ptrdiff_t>(i);
    const auto up_to = [&](double end) {
      return static_cast<size_t>(std::upper_bound(begin, phases.end(), end) - begin);
    };
    most = std::max(most, up_to(phases[i] + kWork - 1e-9));
    fewest = std::min(fewest, up_to(phases[i] + kWork + 1e-9) - 1);  // begins just behind this one
  }
  const double truth = kWork * static_cast<double>(count);
  return std::max(static_cast<double>(most) / truth - 1, 1 - static_cast<double>(fewest) / truth);
}

double WorstError(int frequency_hz, double seconds) {
  double worst = 0;
  for (const int beat : kBeats) {
    worst = std::max(worst, WorstError(static_cast<double>(SamplingPeriodNs(static_cast<uint32_t>(frequency_hz))) / 1e9,
                                       seconds, beat));
  }
  return worst;
}

TEST(SamplingPeriodTest, IsLittleMoreThanTheRateSays) {
  for (const uint32_t hz : {1u, 19u, 99u, 100u, 997u, 10'000u}) {
    const double share = static_cast<double>(SamplingPeriodNs(hz)) * hz / 1e9;
    EXPECT_GT(share, 1.006) << hz;
    EXPECT_LT(share, 1.0065) << hz;
  }
}

TEST(SamplingPeriodTest, NoBeatKeepsStepWithIt) {
  struct Case {
    int frequency_hz;
    double seconds;
    double error;
  };
  // Always-on rates have the time, high ones the samples.
  for (const auto& [frequency_hz, seconds, error] :
       {Case{10, 600, 0.05}, Case{19, 60, 0.1}, Case{19, 600, 0.02}, Case{49, 60, 0.1}, Case{50, 60, 0.1},
        Case{99, 10, 0.15}, Case{99, 60, 0.05}, Case{100, 10, 0.2}, Case{100, 60, 0.05}, Case{250, 10, 0.1},
        Case{499, 10, 0.15}, Case{997, 10, 0.03}, Case{999, 10, 0.03}, Case{1000, 10, 0.03}}) {
    EXPECT_LT(WorstError(frequency_hz, seconds), error) << frequency_hz << " Hz, " << seconds << " s";
  }
}

// The reason for this one: it must not be what it seems to be.
TEST(SamplingPeriodTest, AFractionOfASecondNeverGetsBetter) {
  for (const double seconds : {10.0, 60.0, 600.0}) {
    EXPECT_NEAR(WorstError(1.0 / 19, seconds, 10), 0.47, 0.03) << seconds;
    EXPECT_NEAR(WorstError(1.0 / 100, seconds, 50), 4, 1.1) << seconds;
  }
}

}  // namespace
}  // namespace clrsampler
