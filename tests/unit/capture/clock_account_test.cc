#include "capture/clock_account.h"

#include <gtest/gtest.h>

#include <vector>

namespace clrsampler {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kPeriod = 10'000'000;
const std::vector<int> kBoth = {0, 2};

TEST(ClockAccountTest, CountsRunsAgainstTime) {
  ClockAccount clocks;
  clocks.Update(5 * kSecond, kBoth, std::vector<uint64_t>{1000, 7, 3000}, kPeriod);
  EXPECT_EQ(clocks.due(), 0u);
  EXPECT_EQ(clocks.ran(), 0u);
  clocks.Update(7 * kSecond, kBoth, std::vector<uint64_t>{1200, 7, 3008}, kPeriod);
  EXPECT_EQ(clocks.due(), 400u);
  EXPECT_EQ(clocks.ran(), 208u);
  EXPECT_EQ(clocks.cpus().at(0).ran, 200u);
  EXPECT_EQ(clocks.cpus().at(2).ran, 8u);
  EXPECT_DOUBLE_EQ(clocks.cpus().at(2).due, 200.0);
  EXPECT_EQ(clocks.cpus().count(1), 0u);
}

TEST(ClockAccountTest, ARateCountsForTheTimeBeforeIt) {
  ClockAccount clocks;
  const std::vector<int> one = {0};
  clocks.Update(0, one, std::vector<uint64_t>{0}, kPeriod);
  clocks.Update(kSecond, one, std::vector<uint64_t>{100}, kPeriod);
  clocks.Update(2 * kSecond, one, std::vector<uint64_t>{110}, 10 * kPeriod);
  EXPECT_EQ(clocks.due(), 110u);
  EXPECT_EQ(clocks.ran(), 110u);
}

TEST(ClockAccountTest, ACpuThatWasOffIsNotDue) {
  ClockAccount clocks;
  clocks.Update(0, kBoth, std::vector<uint64_t>{0, 0, 0}, kPeriod);
  clocks.Update(kSecond, kBoth, std::vector<uint64_t>{100, 0, 100}, kPeriod);
  clocks.Update(kSecond, std::vector<int>{0}, std::vector<uint64_t>{100, 0, 100}, kPeriod);
  clocks.Update(2 * kSecond, std::vector<int>{0}, std::vector<uint64_t>{200, 0, 100}, kPeriod);
  clocks.Update(2 * kSecond, kBoth, std::vector<uint64_t>{200, 0, 100}, kPeriod);
  clocks.Update(3 * kSecond, kBoth, std::vector<uint64_t>{300, 0, 200}, kPeriod);
  EXPECT_DOUBLE_EQ(clocks.cpus().at(0).due, 300.0);
  EXPECT_DOUBLE_EQ(clocks.cpus().at(2).due, 200.0);
  EXPECT_EQ(clocks.ran(), 500u);
}

TEST(ClockAccountTest, NeverShrinksAndNeverDividesByNothing) {
  ClockAccount clocks;
  const std::vector<int> cpus = {-1, 0, 64};
  clocks.Update(2 * kSecond, cpus, std::vector<uint64_t>{50}, kPeriod);
  clocks.Update(kSecond, cpus, std::vector<uint64_t>{40}, kPeriod);
  EXPECT_EQ(clocks.due(), 0u);
  EXPECT_EQ(clocks.ran(), 0u);
  clocks.Update(2 * kSecond, cpus, std::vector<uint64_t>{60}, 0);
  EXPECT_EQ(clocks.due(), 0u);
  EXPECT_EQ(clocks.ran(), 0u);
  EXPECT_EQ(clocks.cpus().size(), 1u);
}

}  // namespace
}  // namespace clrsampler
