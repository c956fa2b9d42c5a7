#include "output/share.h"

#include <gtest/gtest.h>

#include <utility>

namespace clrsampler {
namespace {

// 535 samples of which 31 % are something: sqrt(0.31 * 0.69 / 535) = 2.0 %.
TEST(ShareTest, AShareOfSamplesHasItsBinomialError) {
  const Share share = ShareOf(166, 535, 535);
  EXPECT_NEAR(share.value, 0.3103, 1e-4);
  ASSERT_TRUE(share.error.has_value());
  EXPECT_NEAR(*share.error, 0.0200, 1e-4);
  EXPECT_EQ(ShareText(share), "31 % ± 2");
}

TEST(ShareTest, NothingAndAllAreNotCertain) {
  EXPECT_NEAR(*ShareOf(10, 10, 10).error, 0.0798, 1e-4);
  EXPECT_NEAR(*ShareOf(0, 10, 10).error, 0.0798, 1e-4);
}

TEST(ShareTest, DigitsFollowTheError) {
  EXPECT_EQ(ShareText({0.0312, 0.004}), "3.1 % ± 0.4");
  EXPECT_EQ(ShareText({0.00312, 0.0004}), "0.31 % ± 0.04");
  EXPECT_EQ(ShareText({0.5, std::nullopt}), "50.0 %");
}

ProfileModel Weighted(WeightUnit unit, bool times, const std::vector<uint64_t>& weights) {
  ProfileModelBuilder builder;
  builder.meta().unit = unit;
  const ThreadIndex thread = builder.Thread({});
  uint64_t at = 0;
  for (const uint64_t weight : weights) {
    builder.Add({.time_ns = times ? ++at : kNoTime, .thread = thread, .weight = weight});
  }
  return *std::move(builder).Build();
}

TEST(ShareTest, CountedSamplesAreAsManyAsTheirWeights) {
  EXPECT_DOUBLE_EQ(*EffectiveSamples(Weighted(WeightUnit::kSamples, false, {5, 7})), 12);
}

// An event that was told for four stands for four, and tells as much as one.
TEST(ShareTest, SamplesThatStandForOthersAreFewer) {
  EXPECT_DOUBLE_EQ(*EffectiveSamples(Weighted(WeightUnit::kSamples, true, {4, 4})), 2);
}

// One heavy sample tells less than many light ones: (1 + 1 + 4)^2 / (1 + 1 + 16) = 2.
TEST(ShareTest, UnequalWeightsAreFewerSamples) {
  EXPECT_DOUBLE_EQ(*EffectiveSamples(Weighted(WeightUnit::kBytes, true, {1, 1, 4})), 2);
  const std::vector<uint8_t> wanted = {1, 1, 0};
  EXPECT_DOUBLE_EQ(*EffectiveSamples(Weighted(WeightUnit::kBytes, true, {1, 1, 4}), wanted), 2);
}

TEST(ShareTest, SumsOfTimesAreNoSamples) {
  EXPECT_FALSE(EffectiveSamples(Weighted(WeightUnit::kMicroseconds, false, {5, 7})).has_value());
}

}  // namespace
}  // namespace clrsampler
