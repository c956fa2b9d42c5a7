#include "cli/pool_readings.h"

#include <gtest/gtest.h>

#include <optional>

namespace clrsampler {
namespace {

constexpr PoolState kFull = {
    .min_workers = 2, .max_workers = 64, .workers = 20, .working = 8, .wanted = 8, .queued = 30};

TEST(PoolReadingsTest, WorkIsLeftLyingOnlyIfItWasAtBothReadings) {
  EXPECT_TRUE(NumbersOfReadings(kFull, kFull).leaves_work_to_none());
  PoolState open = kFull, drained = kFull;
  open.wanted = 9;
  drained.queued = 0;
  for (const PoolState& other : {open, drained}) {
    EXPECT_FALSE(NumbersOfReadings(other, kFull).leaves_work_to_none());
    EXPECT_FALSE(NumbersOfReadings(kFull, other).leaves_work_to_none());
  }
  EXPECT_EQ(NumbersOfReadings(open, kFull).wanted, 9);
  EXPECT_EQ(NumbersOfReadings(drained, kFull).queued, 0);
}

TEST(PoolReadingsTest, WithoutAFirstReadingNothingIsLeftLying) {
  const PoolNumbers numbers = NumbersOfReadings(std::nullopt, kFull);
  EXPECT_EQ(numbers.workers, 20);
  EXPECT_EQ(numbers.queued, std::nullopt);
  EXPECT_EQ(numbers.working, std::nullopt);
  EXPECT_FALSE(numbers.leaves_work_to_none());
}

// A pool above its goal lets nobody work; no difference below zero is mistaken for a large one.
TEST(PoolReadingsTest, MoreAtWorkThanWantedIsNoRoom) {
  PoolState above = kFull;
  above.working = 12;
  EXPECT_EQ(NumbersOfReadings(above, kFull).working, 8);
  EXPECT_TRUE(NumbersOfReadings(kFull, above).leaves_work_to_none());
}

}  // namespace
}  // namespace clrsampler
