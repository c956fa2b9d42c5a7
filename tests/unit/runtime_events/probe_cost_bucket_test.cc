#include "runtime_events/probe_cost_bucket.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMs;

// Ten microseconds of hits every millisecond: 1 % of a CPU. Gives the milliseconds in which hits were paid for.
int PaidFor(ProbeCostBucket& bucket, uint64_t from_ms, int count) {
  int paid_for = 0;
  for (int i = 0; i < count; ++i) {
    const MonotonicTime now{(from_ms + static_cast<uint64_t>(i)) * kMs};
    if (bucket.Exhausted(now)) continue;
    bucket.Spend(now, 10'000);
    ++paid_for;
  }
  return paid_for;
}

TEST(ProbeCostBucketTest, LessThanItsShareIsNeverExhausted) {
  ProbeCostBucket bucket(0.011, false);
  EXPECT_EQ(PaidFor(bucket, 1, 100'000), 100'000);
}

TEST(ProbeCostBucketTest, AStormGetsItsShareInLongStretches) {
  ProbeCostBucket bucket(0.003, false);
  // 12 ms at once, of which 7 us are used up a millisecond.
  EXPECT_NEAR(PaidFor(bucket, 1, 3000), 1714, 3);
  // All of it has to come back, which takes 4 s, before the next one.
  EXPECT_EQ(PaidFor(bucket, 3001, 2600), 0);
  EXPECT_NEAR(PaidFor(bucket, 5601, 2100), 1714, 130);
  // And so in the long run: 0.3 % of it and what there was at once.
  EXPECT_NEAR(PaidFor(bucket, 7701, 570'000), 570'000 * 3 / 10, 2 * 1714);
}

TEST(ProbeCostBucketTest, WhatIsUsedUpAtOnceHasToComeBackWhole) {
  ProbeCostBucket bucket(0.003, false);
  bucket.Spend({kSecond}, 12 * kMs);
  EXPECT_TRUE(bucket.Exhausted({kSecond}));
  EXPECT_TRUE(bucket.Exhausted({kSecond + 3'999 * kMs}));
  EXPECT_FALSE(bucket.Exhausted({kSecond + 4'001 * kMs}));
}

TEST(ProbeCostBucketTest, AProcessThatStartsHasMoreOnce) {
  ProbeCostBucket bucket(0.003, true);
  // 84 ms at 10 us a millisecond, and then 12 ms at 7, since some comes back.
  EXPECT_NEAR(PaidFor(bucket, 1, 12'000), 8400 + 1714, 5);
  EXPECT_TRUE(bucket.Exhausted({12'001 * kMs}));
  EXPECT_NEAR(PaidFor(bucket, 20'000, 3000), 1714, 3);
}

TEST(ProbeCostBucketTest, WhatIsOwedIsPaidBackAndHasABound) {
  ProbeCostBucket owes(0.003, false);
  owes.Spend({kSecond}, 36 * kMs);  // of it 24 ms that were not there
  EXPECT_TRUE(owes.Exhausted({kSecond + 11'990 * kMs}));
  EXPECT_FALSE(owes.Exhausted({kSecond + 12'010 * kMs}));
  ProbeCostBucket most(0.003, false);
  for (int i = 0; i < 100; ++i) most.Spend({kSecond}, kSecond);
  EXPECT_TRUE(most.Exhausted({kSecond + 19'990 * kMs}));
  EXPECT_FALSE(most.Exhausted({kSecond + 20'010 * kMs}));
}

TEST(ProbeCostBucketTest, TimesOfTwoProcessorsMayCross) {
  ProbeCostBucket bucket(0.003, false);
  bucket.Spend({10 * kSecond}, 11 * kMs);
  bucket.Spend({9 * kSecond}, 0);
  EXPECT_FALSE(bucket.Exhausted({10 * kSecond}));
  bucket.Spend({9 * kSecond}, 1 * kMs);
  EXPECT_TRUE(bucket.Exhausted({10 * kSecond}));
}

}  // namespace
}  // namespace clrsampler
