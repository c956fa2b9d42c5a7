#include "profile/jit_tracker.h"

#include <gtest/gtest.h>

#include <random>

namespace clrsampler {
namespace {

class JitTrackerTest : public testing::Test {
 protected:
  std::optional<Compilation> End(uint32_t tid, uint64_t info, uint64_t time, uint32_t result = 0,
                                 std::optional<MonotonicTime> start = std::nullopt) {
    Compilation done;
    done.tid = tid;
    done.method = 0x5e + info;
    done.done = {time};
    done.result = result;
    return tracker_.End(info, done, start);
  }

  JitTracker tracker_;
};

TEST_F(JitTrackerTest, HasTheTimeFromCallToEnd) {
  tracker_.Begin(7, {1'000}, 0xa, 0x5e + 0xa, 0x7000);
  const auto done = End(7, 0xa, 1'600);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->began.ns, 1'000u);
  EXPECT_EQ(done->duration_ns(), 600u);
  EXPECT_EQ(done->own_ns(), 600u);
}

TEST_F(JitTrackerTest, TakesInnerOnesFromTheOuterOnesOwnTime) {
  tracker_.Begin(7, {1'000}, 0xa, 0x5e + 0xa, 0x7000);
  tracker_.Begin(7, {1'100}, 0xb, 0x5e + 0xb, 0x6000);
  tracker_.Begin(7, {1'200}, 0xc, 0x5e + 0xc, 0x5000);
  EXPECT_EQ(End(7, 0xc, 1'250)->own_ns(), 50u);
  EXPECT_EQ(End(7, 0xb, 1'400)->own_ns(), 250u);
  const auto outer = End(7, 0xa, 2'000);
  EXPECT_EQ(outer->duration_ns(), 1'000u);
  EXPECT_EQ(outer->own_ns(), 700u);
  EXPECT_EQ(tracker_.counters().unfinished, 0u);
}

TEST_F(JitTrackerTest, WhatTheStackSaysCountsWhereTheCallWasNotSeen) {
  EXPECT_FALSE(End(7, 0xa, 900)) << "nothing is known of it";
  // Innermost first, as they end; then a second one inside the outermost, and one behind it.
  EXPECT_EQ(End(7, 0xc, 1'250, 0, MonotonicTime{1'200})->own_ns(), 50u);
  EXPECT_EQ(End(7, 0xb, 1'400, 0, MonotonicTime{1'100})->own_ns(), 250u);
  EXPECT_EQ(End(7, 0xd, 1'700, 0, MonotonicTime{1'600})->own_ns(), 100u);
  const auto outer = End(7, 0xe, 2'000, 0, MonotonicTime{1'000});
  ASSERT_TRUE(outer);
  EXPECT_EQ(outer->duration_ns(), 1'000u);
  EXPECT_EQ(outer->own_ns(), 600u);
  EXPECT_EQ(End(7, 0xf, 2'300, 0, MonotonicTime{2'100})->own_ns(), 200u);
  EXPECT_EQ(tracker_.counters().by_stack, 5u);
  EXPECT_EQ(tracker_.counters().cut, 1u);
}

TEST_F(JitTrackerTest, SeenAndUnseenCallsNest) {
  tracker_.Begin(7, {1'000}, 0xe, 0x5e + 0xe, 0x7000);
  tracker_.Begin(7, {1'050}, 0x9, 0x5e + 0x9, 0x6000);  // an exception ends it; the probe is taken out
  EXPECT_EQ(End(7, 0xc, 1'250, 0, MonotonicTime{1'200})->own_ns(), 50u);
  EXPECT_EQ(tracker_.counters().unfinished, 1u);
  // An event counts more than what the stack says.
  const auto outer = End(7, 0xe, 2'000, 0, MonotonicTime{990});
  EXPECT_EQ(outer->duration_ns(), 1'000u);
  EXPECT_EQ(outer->own_ns(), 950u);
  EXPECT_EQ(tracker_.counters().by_stack, 1u);
}

TEST_F(JitTrackerTest, AnyNumberOfInnerOnesIsKept) {
  for (uint64_t i = 0; i < 1'000; ++i) End(7, 0xa, 10'000 + i * 100 + 10, 0, MonotonicTime{10'000 + i * 100});
  EXPECT_EQ(End(7, 0xb, 200'000, 0, MonotonicTime{9'000})->inner_ns, 10'000u);
}

TEST_F(JitTrackerTest, ThreadsHaveNothingToDoWithEachOther) {
  tracker_.Begin(7, {1'000}, 0xa, 0x5e + 0xa, 0x7000);
  tracker_.Begin(8, {1'100}, 0xa, 0x5e + 0xa, 0x7000);
  EXPECT_EQ(End(7, 0xa, 1'200)->own_ns(), 200u);
  EXPECT_EQ(End(8, 0xa, 1'300)->own_ns(), 200u);
}

TEST_F(JitTrackerTest, OneThatAnExceptionEndedIsNotTheOuterOneOfTheNext) {
  tracker_.Begin(7, {1'000}, 0xa, 0x5e + 0xa, 0x7000);  // never ends
  tracker_.Begin(7, {5'000}, 0xb, 0x5e + 0xb, 0x7000);
  const auto done = End(7, 0xb, 5'100);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->own_ns(), 100u);
  EXPECT_EQ(tracker_.counters().unfinished, 1u);
}

TEST_F(JitTrackerTest, OneThatAnExceptionEndedInsideAnotherCounts) {
  tracker_.Begin(7, {1'000}, 0xa, 0x5e + 0xa, 0x7000);
  tracker_.Begin(7, {1'100}, 0xb, 0x5e + 0xb, 0x6000);  // never ends
  EXPECT_EQ(End(7, 0xa, 2'000)->own_ns(), 1'000u);
  EXPECT_EQ(tracker_.counters().unfinished, 1u);
}

TEST_F(JitTrackerTest, AnotherMethodAtTheSamePlaceIsAnotherCompilation) {
  tracker_.Begin(7, {1'000}, 0xa, 0x1111, 0x7000);  // its end was lost, and the beginning of the next
  EXPECT_FALSE(End(7, 0xa, 9'000));
  EXPECT_EQ(tracker_.counters().cut, 1u);
  tracker_.Finish();
  EXPECT_EQ(tracker_.counters().unfinished, 1u);
}

TEST_F(JitTrackerTest, WhatBeganBeforeWatchingIsCut) {
  EXPECT_FALSE(End(7, 0xa, 1'000));
  EXPECT_EQ(tracker_.counters().cut, 1u);
  EXPECT_EQ(tracker_.counters().compilations, 0u);
}

TEST_F(JitTrackerTest, ARefusalCounts) {
  tracker_.Begin(7, {1'000}, 0xa, 0x5e + 0xa, 0x7000);
  EXPECT_EQ(End(7, 0xa, 1'100, 0x80000001)->result, 0x80000001u);
  EXPECT_EQ(tracker_.counters().refused, 1u);
}

TEST_F(JitTrackerTest, WhatIsOpenAtTheEndIsUnfinished) {
  tracker_.Begin(7, {1'000}, 0xa, 0x5e + 0xa, 0x7000);
  tracker_.Begin(7, {1'000}, 0xb, 0x5e + 0xb, 0x6000);
  tracker_.Finish();
  EXPECT_EQ(tracker_.counters().unfinished, 2u);
}

TEST_F(JitTrackerTest, AnyEventsInAnyOrderAreCountedOnce) {
  std::mt19937_64 random(5);
  uint64_t begun = 0, now = 1;
  for (int i = 0; i < 200'000; ++i) {
    const auto tid = static_cast<uint32_t>(random() % 6'000);
    const uint64_t info = random() % 8;
    if (random() % 2 == 0) {
      ++begun;
      tracker_.Begin(tid, {now}, info, 0x5e + info, random() % 1'000);
    } else if (const auto done = End(tid, info, now - random() % 3)) {
      EXPECT_LE(done->own_ns(), done->duration_ns());
      EXPECT_LE(done->began, done->done);
    }
    now += random() % 5;
  }
  tracker_.Finish();
  EXPECT_EQ(tracker_.counters().compilations + tracker_.counters().unfinished, begun);
}

TEST_F(JitTrackerTest, WhatIsUnderWayWhereEventsAreMissingIsCutAndNotUnfinished) {
  tracker_.Begin(7, {1'000}, 0xa, 0x5e + 0xa, 0x7000);
  tracker_.Begin(7, {1'100}, 0xb, 0x5e + 0xb, 0x6000);
  tracker_.Cut();
  EXPECT_FALSE(End(7, 0xb, 1'200));
  tracker_.Finish();
  EXPECT_EQ(tracker_.counters().cut, 3u) << "two that began, and an end of one of them";
  EXPECT_EQ(tracker_.counters().unfinished, 0u);
}

}  // namespace
}  // namespace clrsampler
