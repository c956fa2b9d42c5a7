#include "pipeline/clock_account.h"

#include <gtest/gtest.h>

#include "os/clock.h"

namespace clrsampler {
namespace {

constexpr uint64_t kPeriod = 10'000'000;

HostCpuTime Busy(uint64_t ns) { return {.busy_ns = ns}; }

TEST(ClockAccountTest, CountsRunsAgainstBusyTime) {
  ClockAccount clock;
  clock.Update(Busy(500 * kSecondNs), 7, kPeriod);
  EXPECT_EQ(clock.due(), 0u);
  EXPECT_EQ(clock.ran(), 0u);
  clock.Update(Busy(502 * kSecondNs), 7 + 8, kPeriod);
  EXPECT_EQ(clock.due(), 200u);
  EXPECT_EQ(clock.ran(), 8u);
}

TEST(ClockAccountTest, ARateCountsForTheTimeBeforeIt) {
  ClockAccount clock;
  clock.Update(Busy(0), 0, kPeriod);
  clock.Update(Busy(kSecondNs), 100, kPeriod);
  clock.Update(Busy(2 * kSecondNs), 110, 10 * kPeriod);
  EXPECT_EQ(clock.due(), 110u);
  EXPECT_EQ(clock.ran(), 110u);
}

TEST(ClockAccountTest, NeverShrinksAndNeverDividesByNothing) {
  ClockAccount clock;
  clock.Update(Busy(2 * kSecondNs), 50, kPeriod);
  clock.Update(Busy(kSecondNs), 40, kPeriod);
  EXPECT_EQ(clock.due(), 0u);
  EXPECT_EQ(clock.ran(), 0u);
  clock.Update(Busy(2 * kSecondNs), 60, 0);
  EXPECT_EQ(clock.due(), 0u);
  EXPECT_EQ(clock.ran(), 20u);
}

TEST(ClockAccountTest, TimeThatAHypervisorTookIsTold) {
  ClockAccount clock;
  clock.Update({.stolen_ns = 700}, 0, kPeriod);
  EXPECT_EQ(clock.stolen_ns(), 0u);
  clock.Update({.stolen_ns = 950}, 0, kPeriod);
  EXPECT_EQ(clock.stolen_ns(), 250u);
  clock.Update({.stolen_ns = 900}, 0, kPeriod);
  clock.Update({.stolen_ns = 910}, 0, kPeriod);
  EXPECT_EQ(clock.stolen_ns(), 260u);
}

}  // namespace
}  // namespace clrsampler
