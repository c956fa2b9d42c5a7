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

TEST_F(SwitchClockTest, ATaskThatRanWithinTheLimitIsKnownByTheSchedulersNote) {
  constexpr uint64_t kNow = 105 * kMillisecond;
  Error(100 * kMillisecond, 0);
  const auto has_run = [&](uint64_t before) {
    return host_has_run_within({.run_delay = 0, .last_arrival = kNow - before, .last_queued = 0}, kMillisecond,
                               kNow + ahead_);
  };
  EXPECT_TRUE(has_run(10'000));
  EXPECT_TRUE(has_run(980'000));
  EXPECT_FALSE(has_run(kMillisecond));
  EXPECT_FALSE(has_run(995'000)) << "within what the clocks may have parted";
  EXPECT_FALSE(has_run(30 * kMillisecond));
}

TEST_F(SwitchClockTest, ATaskCountsAsLongGoneWhereTheClocksWereNotComparedOrLongAgo) {
  const host_notes notes{.run_delay = 0, .last_arrival = 100 * kMillisecond - 10'000, .last_queued = 0};
  EXPECT_FALSE(host_has_run_within(notes, kMillisecond, 100 * kMillisecond + ahead_));
  Error(99 * kMillisecond, 0);
  EXPECT_TRUE(host_has_run_within(notes, kMillisecond, 100 * kMillisecond + ahead_));
  EXPECT_FALSE(host_has_run_within({}, kMillisecond, 100 * kMillisecond + ahead_)) << "the scheduler takes no notes";
  const host_notes later{.run_delay = 0, .last_arrival = 3'000 * kMillisecond - 10'000, .last_queued = 0};
  EXPECT_FALSE(host_has_run_within(later, kMillisecond, 3'000 * kMillisecond + ahead_));
}

TEST_F(SwitchClockTest, ATaskThatLeavesItsCpuHasItSinceTheSchedulersNote) {
  const host_notes notes{.run_delay = 0, .last_arrival = 8'900, .last_queued = 0};
  EXPECT_EQ(host_arrival_before(notes, 9'000, kAhead + 9'000), kAhead + 8'900);
  EXPECT_EQ(host_arrival_before(notes, 0, kAhead + 9'000), 0U) << "the scheduler's time is not known";
  EXPECT_EQ(host_arrival_before({}, 9'000, kAhead + 9'000), 0U) << "the scheduler takes no notes";
}

TEST_F(SwitchClockTest, TimeInQueuesHasThePresentOne) {
  EXPECT_EQ(host_time_in_queues({.run_delay = 700, .last_arrival = 0, .last_queued = 0}, 9'000), 700U);
  EXPECT_EQ(host_time_in_queues({.run_delay = 700, .last_arrival = 0, .last_queued = 8'900}, 9'000), 800U);
  EXPECT_EQ(host_time_in_queues({.run_delay = 700, .last_arrival = 0, .last_queued = 8'900}, 0), 700U);
}

}  // namespace
}  // namespace clrsampler
