#include "pipeline/clock_account.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kPeriod = 10'000'000;

TEST(ClockAccountTest, CountsRunsAgainstBusyTime) {
  ClockAccount clock;
  clock.Update(500 * kSecond, 7, kPeriod);
  EXPECT_EQ(clock.due(), 0u);
  EXPECT_EQ(clock.ran(), 0u);
  clock.Update(502 * kSecond, 7 + 8, kPeriod);
  EXPECT_EQ(clock.due(), 200u);
  EXPECT_EQ(clock.ran(), 8u);
}

TEST(ClockAccountTest, ARateCountsForTheTimeBeforeIt) {
  ClockAccount clock;
  clock.Update(0, 0, kPeriod);
  clock.Update(kSecond, 100, kPeriod);
  clock.Update(2 * kSecond, 110, 10 * kPeriod);
  EXPECT_EQ(clock.due(), 110u);
  EXPECT_EQ(clock.ran(), 110u);
}

TEST(ClockAccountTest, NeverShrinksAndNeverDividesByNothing) {
  ClockAccount clock;
  clock.Update(2 * kSecond, 50, kPeriod);
  clock.Update(kSecond, 40, kPeriod);
  EXPECT_EQ(clock.due(), 0u);
  EXPECT_EQ(clock.ran(), 0u);
  clock.Update(2 * kSecond, 60, 0);
  EXPECT_EQ(clock.due(), 0u);
  EXPECT_EQ(clock.ran(), 20u);
}

}  // namespace
}  // namespace clrsampler
