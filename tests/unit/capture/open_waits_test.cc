#include "capture/open_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Looked at 1000 after its thread was first seen, at 1100.
wire_open_wait Waits(uint32_t tid, uint64_t blocked_ns, uint64_t runnable_ns = 0) {
  wire_open_wait open{};
  open.ip = 0x400000;
  open.switches = 5;
  wire_wait& wait = open.wait;
  wait.tid = tid;
  wait.header.time_ns = 1100;
  wait.seen_ns = 100;
  wait.flags = WIRE_WAIT_OPEN;
  wait.blocked_ns = blocked_ns;
  wait.runnable_ns = runnable_ns;
  wait.total_blocked_ns = blocked_ns;
  wait.total_runnable_ns = runnable_ns;
  wait.total_cpu_ns = 1000 - blocked_ns - runnable_ns;
  wait.blocked_weight = blocked_ns == 0 ? 0 : WIRE_WAIT_ONE;
  wait.runnable_weight = runnable_ns == 0 ? 0 : WIRE_WAIT_ONE;
  return open;
}

uint64_t LifeOf(const wire_open_wait& open) {
  return open.wait.total_cpu_ns + open.wait.total_blocked_ns + open.wait.total_runnable_ns;
}

TEST(TakeBackTest, WhatHasPassedSinceComesOffTheStateThatGoesOn) {
  wire_open_wait open = Waits(1, 600);
  ASSERT_TRUE(TakeBack(open, {1000}));
  EXPECT_EQ(open.wait.header.time_ns, 1000u);
  EXPECT_EQ(open.wait.blocked_ns, 500u);
  EXPECT_EQ(open.wait.total_blocked_ns, 500u);
  EXPECT_EQ(open.wait.total_cpu_ns, 400u);
  EXPECT_EQ(LifeOf(open), 900u);
}

TEST(TakeBackTest, AThreadThatBecameRunnableSinceWasBlockedThen) {
  wire_open_wait open = Waits(1, 600, 30);
  ASSERT_TRUE(TakeBack(open, {1000}));
  EXPECT_EQ(open.wait.runnable_ns, 0u);
  EXPECT_EQ(open.wait.runnable_weight, 0u);
  EXPECT_EQ(open.wait.blocked_ns, 530u);
  EXPECT_EQ(open.wait.blocked_weight, uint32_t{WIRE_WAIT_ONE});
  EXPECT_EQ(LifeOf(open), 900u);
}

TEST(TakeBackTest, AWakerThatCameSinceHasEndedNothing) {
  for (const uint64_t woken_ns : {1050, 950}) {
    wire_open_wait open = Waits(1, 600, 30);
    open.wait.woken_ns = woken_ns;
    open.wait.waker_tgid = open.wait.waker_tid = 7;
    open.wait.flags |= WIRE_WAIT_HAS_WAKER_STACK;
    ASSERT_TRUE(TakeBack(open, {1000}));
    const bool was_woken = woken_ns < 1000;
    EXPECT_EQ(open.wait.woken_ns, was_woken ? woken_ns : 0);
    EXPECT_EQ(open.wait.waker_tid, was_woken ? 7u : 0u);
    EXPECT_EQ((open.wait.flags & WIRE_WAIT_HAS_WAKER_STACK) != 0, was_woken);
  }
}

TEST(TakeBackTest, AWaitThatBeganSinceIsNone) {
  wire_open_wait open = Waits(1, 40);
  ASSERT_TRUE(TakeBack(open, {1000}));
  EXPECT_EQ(open.wait.blocked_ns, 0u);
  EXPECT_EQ(open.wait.blocked_weight, 0u);
  EXPECT_EQ(open.wait.total_cpu_ns, 900u);
  EXPECT_EQ(LifeOf(open), 900u);
}

TEST(TakeBackTest, AThreadThatWakesOftenHasWaitedWhatItHasNotRun) {
  wire_open_wait open = Waits(1, 10);
  open.wait.blocked_weight = 0;
  open.wait.total_cpu_ns = 30;
  open.wait.total_blocked_ns = 970;
  open.wait.total_short_ns = 970;
  ASSERT_TRUE(TakeBack(open, {1000}));
  EXPECT_EQ(open.wait.total_cpu_ns, 0u);
  EXPECT_EQ(open.wait.total_blocked_ns, 900u);
  EXPECT_EQ(open.wait.total_short_ns, 900u);
  EXPECT_EQ(LifeOf(open), 900u);
}

TEST(TakeBackTest, AThreadThatDidNotLiveIsToldNextTime) {
  wire_open_wait open = Waits(1, 40);
  EXPECT_FALSE(TakeBack(open, {100}));
}

TEST(TakeBackTest, AShortPartCountsWithItsWaitAndNotBefore) {
  wire_open_wait open = Waits(1, 200);
  open.wait.blocked_weight = 0;  // below the threshold, so it was added to those
  open.wait.total_short_ns = 207;
  ASSERT_TRUE(TakeBack(open, {1100}));
  EXPECT_EQ(open.wait.total_short_ns, 7u);
}

TEST(EndAtTest, AShortPartThatNothingFollowsCounts) {
  wire_open_wait open = Waits(1, 200, 30);
  open.wait.blocked_weight = open.wait.runnable_weight = 0;
  open.wait.total_short_ns = 7 + 200 + 30;
  ASSERT_TRUE(EndAt(open, {1060}));  // 30 of runnable, and 10 of being blocked, came later
  EXPECT_EQ(open.wait.total_short_ns, 7u + 190u);
  EXPECT_EQ(open.wait.total_blocked_ns, 190u);
  EXPECT_EQ(LifeOf(open), 960u);
}

TEST(EndAtTest, ALongPartIsToldAndNotShort) {
  wire_open_wait open = Waits(1, 600);
  ASSERT_TRUE(EndAt(open, {1000}));
  EXPECT_EQ(open.wait.total_short_ns, 0u);
  EXPECT_EQ(open.wait.blocked_ns, 500u);
  EXPECT_EQ(open.wait.blocked_weight, uint32_t{WIRE_WAIT_ONE});
}

TEST(SeenStacksTest, AThreadThatHasNotRunKeepsItsStack) {
  SeenStacks seen;
  std::vector<wire_open_wait> first = {Waits(1, 600), Waits(2, 700), Waits(3, 0)};
  EXPECT_THAT(seen.Choose(first, 10), ElementsAre(1, 0)) << "the longest first; one that runs has no wait";
  for (const size_t i : {0, 1}) seen.Take(first[i]);
  seen.EndLook();

  std::vector<wire_open_wait> second = {Waits(1, 650), Waits(2, 20)};
  ++second[1].switches;  // it has run meanwhile
  EXPECT_THAT(seen.Choose(second, 10), ElementsAre(1));
  EXPECT_NE(second[0].wait.flags & kWaitUnmoved, 0u);
  EXPECT_EQ(second[1].wait.flags & kWaitUnmoved, 0u);
}

TEST(SeenStacksTest, AnotherThreadOfThatNumberHasAStackOfItsOwn) {
  SeenStacks seen;
  std::vector<wire_open_wait> first = {Waits(1, 600)};
  seen.Choose(first, 10);
  seen.Take(first[0]);
  seen.EndLook();
  std::vector<wire_open_wait> second = {Waits(1, 600)};
  second[0].wait.process_start_ns = 77;
  EXPECT_THAT(seen.Choose(second, 10), ElementsAre(0));
}

TEST(SeenStacksTest, OneThatALookHasNotMetIsForgotten) {
  SeenStacks seen;
  std::vector<wire_open_wait> first = {Waits(1, 600)};
  seen.Choose(first, 10);
  seen.Take(first[0]);
  seen.EndLook();
  std::vector<wire_open_wait> none;
  EXPECT_THAT(seen.Choose(none, 10), IsEmpty());
  seen.EndLook();
  std::vector<wire_open_wait> again = {Waits(1, 600)};
  EXPECT_THAT(seen.Choose(again, 10), ElementsAre(0));
}

// Its time must not go to others that were told.
TEST(SeenStacksTest, BeyondTheLimitAWaitIsToldWithoutAStack) {
  SeenStacks seen;
  std::vector<wire_open_wait> threads = {Waits(1, 300), Waits(2, 500), Waits(3, 400)};
  threads[1].ip = 0;  // nothing to read a stack by
  EXPECT_THAT(seen.Choose(threads, 1), ElementsAre(2));
  for (const wire_open_wait& thread : threads) EXPECT_EQ(thread.wait.blocked_weight, uint32_t{WIRE_WAIT_ONE});
}

}  // namespace
}  // namespace clrsampler
