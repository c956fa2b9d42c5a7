#include "pipeline/window_clock.h"

#include <gtest/gtest.h>

#include "os/clock.h"

namespace clrsampler {
namespace {

constexpr uint64_t kLength = 10 * kSecondNs;
constexpr uint64_t kUnix = 1'700'000'000 * kSecondNs;

class WindowClockTest : public testing::Test {
 protected:
  WindowClockTest() { clock_.Begin({500}, kUnix); }
  // Ends the window at hand when it is due; the wall clock is off by so much from where the last one left it.
  WindowTimes Next(int64_t off_ns) {
    const uint64_t length_ns = clock_.End().ns - clock_.begin().ns;
    return clock_.Close(clock_.End(), clock_.begin_unix_ns() + length_ns + static_cast<uint64_t>(off_ns));
  }

  WindowCuts cuts_;
  WindowClock clock_{{kLength, kSecondNs, &cuts_}};
};

TEST_F(WindowClockTest, WindowsFollowEachOtherWithoutGaps) {
  uint64_t end = kUnix;
  for (uint64_t number = 1; number < 100; ++number) {
    const WindowTimes times = Next(0);
    EXPECT_EQ(times.number, number);
    EXPECT_EQ(times.begin_unix_ns, end);
    EXPECT_EQ(times.length_ns, kLength);
    EXPECT_EQ(times.clock_jump_ns, 0);
    end = times.end_unix_ns;
    EXPECT_EQ(end, kUnix + number * kLength);
  }
  EXPECT_EQ(clock_.begin().ns, 500 + 99 * kLength);
}

TEST_F(WindowClockTest, TheWallClockIsFollowedSlowlyInBothDirections) {
  EXPECT_EQ(Next(3'000'000).end_unix_ns, kUnix + kLength + 3'000'000);
  const WindowTimes fast = Next(900'000'000);
  EXPECT_EQ(fast.end_unix_ns - fast.begin_unix_ns, kLength + 5'000'000);
  const WindowTimes slow = Next(-900'000'000);
  EXPECT_EQ(slow.begin_unix_ns, fast.end_unix_ns);
  EXPECT_EQ(slow.end_unix_ns - slow.begin_unix_ns, kLength - 5'000'000);
  EXPECT_EQ(slow.length_ns, kLength);
  EXPECT_EQ(slow.clock_jump_ns, 0);
}

TEST_F(WindowClockTest, AWindowThatIsShorterThanTheSlewDoesNotEndBeforeItBegins) {
  const WindowTimes times = clock_.Close({500 + 1'000'000}, kUnix - 20'000'000);
  EXPECT_EQ(times.length_ns, 1'000'000u);
  EXPECT_EQ(times.end_unix_ns, kUnix);
  EXPECT_EQ(clock_.begin_unix_ns(), kUnix);
}

TEST_F(WindowClockTest, AClockThatWasSetBeginsANewLineAndIsToldOnce) {
  cuts_.Ask(kUnix + 15 * kSecondNs);
  for (const int64_t jump : {int64_t{3600} * int64_t{kSecondNs}, -int64_t{3600} * int64_t{kSecondNs}}) {
    const WindowTimes before = Next(jump);
    EXPECT_EQ(before.end_unix_ns, before.begin_unix_ns + kLength);
    EXPECT_EQ(clock_.begin_unix_ns(), before.end_unix_ns + static_cast<uint64_t>(jump));
    const WindowTimes after = Next(0);
    EXPECT_EQ(after.length_ns, kLength) << "a wish of the old clock is none of the new one";
    EXPECT_EQ(after.begin_unix_ns, before.end_unix_ns + static_cast<uint64_t>(jump));
    EXPECT_EQ(after.clock_jump_ns, jump);
    EXPECT_EQ(Next(0).clock_jump_ns, 0);
  }
}

TEST_F(WindowClockTest, AWishEndsAWindowEarlierButNotBelowTheShortest) {
  cuts_.Ask(kUnix + 4 * kSecondNs);
  EXPECT_EQ(clock_.End().ns, 500 + 4 * kSecondNs);
  EXPECT_EQ(Next(0).length_ns, 4 * kSecondNs);
  cuts_.Ask(kUnix + 4 * kSecondNs + 10);
  EXPECT_EQ(Next(0).length_ns, kSecondNs);
  cuts_.Ask(kUnix + 3600 * kSecondNs);
  EXPECT_EQ(Next(0).length_ns, kLength);
}

}  // namespace
}  // namespace clrsampler
