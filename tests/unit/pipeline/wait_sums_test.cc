#include "pipeline/wait_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "os/clock.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::Pair;

ObservedWait Wait(uint64_t ns, double stands_for = 1) {
  ObservedWait wait;
  wait.wait_ns = ns;
  wait.stands_for = stands_for;
  wait.ended = {ns + 5};
  wait.tid = 3;
  return wait;
}

WaitWatch::Threads Threads(uint64_t cpu, uint64_t blocked, uint64_t runnable, uint64_t short_ns) {
  ThreadTimes times;
  times.cpu_ns = cpu;
  times.blocked_ns = blocked;
  times.runnable_ns = runnable;
  times.short_ns = short_ns;
  return {{3, times}};
}

std::map<StackId, uint64_t> Given(const WaitSums& sums, const WaitWatch::Threads& threads, WaitSums::Rest* rest) {
  std::map<StackId, uint64_t> by_stack;
  *rest = sums.Give(threads, [&](const WaitSums::Entry& entry) { by_stack[entry.stack] += entry.microseconds; });
  return by_stack;
}

TEST(WaitSumsTest, WaitsThatStandForOthersAreBroughtToWhatThereWas) {
  for (const bool keep_each : {false, true}) {
    WaitSums sums;
    sums.Add(1, Wait(10 * kMillisecondNs), keep_each);      // stays what it is
    sums.Add(2, Wait(2 * kMillisecondNs, 5), keep_each);    // stands for 10 ms, and there were 30
    sums.Add(3, Wait(1 * kMillisecondNs, 5.0), keep_each);  // for 5 ms
    EXPECT_EQ(sums.kept(), keep_each ? 3u : 0u);
    WaitSums::Rest rest;
    EXPECT_THAT(Given(sums, Threads(0, 41 * kMillisecondNs, 2 * kMillisecondNs, 3 * kMillisecondNs), &rest),
                ElementsAre(Pair(1, 10'000), Pair(2, 20'000), Pair(3, 10'000)));
    EXPECT_EQ(rest.short_us, 3000);
    EXPECT_EQ(rest.untold_us, 0);
  }
}

TEST(WaitSumsTest, SamplesAreBroughtToTheCpuTimeOfTheThreads) {
  WaitSums sums;
  sums.AddCpu(1, 10 * kMillisecondNs, {7}, 3, "worker");
  sums.AddCpu(2, 10 * kMillisecondNs, {8}, 3, "worker");
  WaitSums::Rest rest;
  EXPECT_THAT(Given(sums, Threads(30 * kMillisecondNs, 0, 0, 0), &rest), ElementsAre(Pair(1, 15'000), Pair(2, 15'000)));
}

TEST(WaitSumsTest, WhatNothingStandsForIsSaid) {
  WaitSums sums;
  sums.Add(1, Wait(10 * kMillisecondNs));
  WaitSums::Rest rest;
  EXPECT_THAT(Given(sums, Threads(0, 25 * kMillisecondNs, 0, 5 * kMillisecondNs), &rest), ElementsAre(Pair(1, 10'000)));
  EXPECT_EQ(rest.untold_us, 10'000);
  EXPECT_EQ(rest.short_us, 5000);
}

TEST(WaitSumsTest, RoundingLosesNothing) {
  WaitSums sums;
  for (StackId stack = 0; stack < 1000; ++stack) sums.Add(stack, Wait(1'499));
  WaitSums::Rest rest;
  uint64_t sum = 0;
  for (const auto& [stack, us] : Given(sums, Threads(0, 1000 * 1'499, 0, 0), &rest)) sum += us;
  EXPECT_EQ(sum, 1499);
}

TEST(WaitSumsTest, EachWaitHasItsBeginAndItsThread) {
  WaitSums sums;
  sums.Add(1, Wait(10 * kMillisecondNs), /*keep=*/true);
  sums.Add(1, Wait(20 * kMillisecondNs));
  std::vector<WaitSums::Entry> entries;
  sums.Give(Threads(0, 30 * kMillisecondNs, 0, 0), [&](const WaitSums::Entry& entry) { entries.push_back(entry); });
  ASSERT_EQ(entries.size(), 2);
  EXPECT_EQ(entries[0].began.ns, 5);
  EXPECT_EQ(entries[0].tid, 3);
  EXPECT_EQ(entries[1].began, MonotonicTime::Max());
  EXPECT_EQ(entries[1].tid, 0);
}

}  // namespace
}  // namespace clrsampler
