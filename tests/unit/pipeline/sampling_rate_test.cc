#include "pipeline/sampling_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/sampling_period.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;

TEST(SamplingRateTest, ASampleStandsForThePeriodOfItsTime) {
  SamplingRate rate(100, {.frequency_hz = 100});
  rate.Changed({10}, 50);
  rate.Changed({20}, 25);
  EXPECT_EQ(rate.hz(), 25u);
  EXPECT_EQ(rate.PeriodAt({0}), SamplingPeriodNs(100));
  EXPECT_EQ(rate.PeriodAt({9}), SamplingPeriodNs(100));
  EXPECT_EQ(rate.PeriodAt({10}), SamplingPeriodNs(50));
  EXPECT_EQ(rate.PeriodAt({19}), SamplingPeriodNs(50));
  EXPECT_EQ(rate.PeriodAt({20}), SamplingPeriodNs(25));
  rate.DropBefore({19});
  EXPECT_EQ(rate.PeriodAt({19}), SamplingPeriodNs(50));
  rate.DropBefore({1000});
  EXPECT_EQ(rate.PeriodAt({5}), SamplingPeriodNs(25)) << "the oldest that is known";
}

TEST(SamplingRateTest, AWindowHasTheRateItBeganWithAndThoseItChangedTo) {
  SamplingRate rate(100, {.frequency_hz = 100});
  EXPECT_THAT(rate.TakeWindow(), ElementsAre(100));
  rate.Changed({10}, 50);
  rate.Changed({20}, 25);
  EXPECT_THAT(rate.TakeWindow(), ElementsAre(100, 50, 25));
  EXPECT_THAT(rate.TakeWindow(), ElementsAre(25));
}

TEST(SamplingRateTest, WantsAnotherRateUntilItIsSetAndSaysWhy) {
  SamplingRate rate(100, {.frequency_hz = 100});
  RateInputs inputs;
  inputs.now = {kSecondNs};
  EXPECT_EQ(rate.Wanted(inputs), std::nullopt);
  inputs.now.ns += 5 * kSecondNs;
  inputs.lost = 10;
  ASSERT_EQ(rate.Wanted(inputs), std::optional<uint32_t>(50));
  EXPECT_EQ(
      rate.Reason(50),
      "sampling at 50 Hz instead of 100: samples come faster than they can be read; more such steps are only counted");
  rate.Changed(inputs.now, 50);
  inputs.now.ns += kSecondNs;
  EXPECT_EQ(rate.Wanted(inputs), std::nullopt);
  std::optional<uint32_t> up;
  for (int second = 0; second < 60 && !up; ++second) {
    inputs.now.ns += kSecondNs;
    up = rate.Wanted(inputs);
  }
  ASSERT_EQ(up, std::optional<uint32_t>(100));
  EXPECT_EQ(rate.Reason(*up), "sampling at 100 Hz again");
}

}  // namespace
}  // namespace clrsampler
