// The times of switches, from a scheduler's clock that is compared with CLOCK_MONOTONIC now and then.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

#include "unit/bpf/switch_clock_host.h"

namespace clrsampler {
namespace {

constexpr uint64_t kMillisecond = 1'000'000, kAhead = 7'000'000'000'000;

class SwitchClockTest : public testing::Test {
 protected:
  void SetUp() override { host_clock_reset(); }

  // How far the time of a switch at `at` is from the truth, where our reading comes `late` nanoseconds after the
  // scheduler's.
  int64_t Error(uint64_t at, uint64_t late) {
    return static_cast<int64_t>(host_time_of_switch(at, at + ahead_ + late) - (at + ahead_));
  }

  uint64_t ahead_ = kAhead;
};

TEST_F(SwitchClockTest, BetweenComparisonsTheSchedulersClockIsEnough) {
  EXPECT_EQ(Error(50 * kMillisecond, 200), 200);
  EXPECT_EQ(Error(51 * kMillisecond, 3 * kMillisecond), 200) << "not compared";
}

TEST_F(SwitchClockTest, ACpuThatItsHostTakesAwayDoesNotMoveTheTimesThatFollow) {
  Error(100 * kMillisecond, 200);
  EXPECT_EQ(Error(115 * kMillisecond, 3 * kMillisecond), 200);
  EXPECT_EQ(Error(118 * kMillisecond, 300), 200);
  EXPECT_EQ(Error(130 * kMillisecond, 150), 150);
}

TEST_F(SwitchClockTest, WhereThatHitsTheFirstComparisonTheNextOneMendsIt) {
  EXPECT_EQ(Error(100 * kMillisecond, 3 * kMillisecond), 3 * int64_t{kMillisecond});
  EXPECT_EQ(Error(111 * kMillisecond, 200), 200);
}

TEST_F(SwitchClockTest, ClocksThatPartSlowlyAreFollowed) {
  for (uint64_t at = 100 * kMillisecond; at < 20'000 * kMillisecond; at += 11 * kMillisecond) {
    ahead_ += 5'500;  // 500 parts in a million
    ASSERT_LE(std::abs(Error(at, 200)), 6'000);
  }
}

TEST_F(SwitchClockTest, AfterALongIdleTimeTheDriftOfAllOfItIsBelieved) {
  Error(100 * kMillisecond, 200);
  ahead_ += 5 * kMillisecond;
  EXPECT_EQ(Error(10'100 * kMillisecond, 200), 200);
}

TEST_F(SwitchClockTest, AJumpOfTheSchedulersClockIsBelievedWithinATenthOfASecond) {
  Error(100 * kMillisecond, 200);
  ahead_ += 40 * kMillisecond;
  int late = 0;
  uint64_t at = 111 * kMillisecond;
  while (std::abs(Error(at, 200 + late)) > 1'000 && late < 100) {
    at += 11 * kMillisecond;
    ++late;
  }
  EXPECT_LE(late, 9);
  ahead_ -= 60 * kMillisecond;
  EXPECT_EQ(Error(at + 11 * kMillisecond, 200), 200) << "no delay makes the difference less";
}

}  // namespace
}  // namespace clrsampler
