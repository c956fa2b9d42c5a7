#include "runtime_events/probe_cost_bucket.h"

#include <gtest/gtest.h>

#include "os/clock.h"

namespace clrsampler {
namespace {

// Ten microseconds of hits every millisecond: 1 % of a CPU. Gives the milliseconds in which hits were paid for.
int PaidFor(ProbeCostBucket& bucket, uint64_t from_ms, int count) {
  int paid_for = 0;
  for (int i = 0; i < count; ++i) {
    const MonotonicTime now{(from_ms + static_cast<uint64_t>(i)) * kMillisecondNs};
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
  bucket.Spend({kSecondNs}, 12 * kMillisecondNs);
  EXPECT_TRUE(bucket.Exhausted({kSecondNs}));
  EXPECT_TRUE(bucket.Exhausted({kSecondNs + 3'999 * kMillisecondNs}));
  EXPECT_FALSE(bucket.Exhausted({kSecondNs + 4'001 * kMillisecondNs}));
}

TEST(ProbeCostBucketTest, AProcessThatStartsHasMoreOnce) {
  ProbeCostBucket bucket(0.003, true);
  // 84 ms at 10 us a millisecond, and then 12 ms at 7, since some comes back.
  EXPECT_NEAR(PaidFor(bucket, 1, 12'000), 8400 + 1714, 5);
  EXPECT_TRUE(bucket.Exhausted({12'001 * kMillisecondNs}));
  EXPECT_NEAR(PaidFor(bucket, 20'000, 3000), 1714, 3);
}

TEST(ProbeCostBucketTest, WhatIsOwedIsPaidBackAndHasABound) {
  ProbeCostBucket owes(0.003, false);
  owes.Spend({kSecondNs}, 36 * kMillisecondNs);  // of it 24 ms that were not there
  EXPECT_TRUE(owes.Exhausted({kSecondNs + 11'990 * kMillisecondNs}));
  EXPECT_FALSE(owes.Exhausted({kSecondNs + 12'010 * kMillisecondNs}));
  ProbeCostBucket most(0.003, false);
  for (int i = 0; i < 100; ++i) most.Spend({kSecondNs}, kSecondNs);
  EXPECT_TRUE(most.Exhausted({kSecondNs + 19'990 * kMillisecondNs}));
  EXPECT_FALSE(most.Exhausted({kSecondNs + 20'010 * kMillisecondNs}));
}

TEST(ProbeCostBucketTest, ASmallBucketOwesAsMuch) {
  ProbeCostBucket owes(0.003, false, 1);
  owes.Spend({kSecondNs}, 36 * kMillisecondNs);  // of it 33 ms that were not there
  EXPECT_TRUE(owes.Exhausted({kSecondNs + 11'990 * kMillisecondNs}));
  EXPECT_FALSE(owes.Exhausted({kSecondNs + 12'010 * kMillisecondNs}));
}

TEST(ProbeCostBucketTest, TimesOfTwoProcessorsMayCross) {
  ProbeCostBucket bucket(0.003, false);
  bucket.Spend({10 * kSecondNs}, 11 * kMillisecondNs);
  bucket.Spend({9 * kSecondNs}, 0);
  EXPECT_FALSE(bucket.Exhausted({10 * kSecondNs}));
  bucket.Spend({9 * kSecondNs}, 1 * kMillisecondNs);
  EXPECT_TRUE(bucket.Exhausted({10 * kSecondNs}));
}

}  // namespace
}  // namespace clrsampler
