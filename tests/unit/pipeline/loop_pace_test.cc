#include "pipeline/loop_pace.h"

#include <gtest/gtest.h>

#include "os/clock.h"

namespace clrsampler {
namespace {

TEST(LoopPaceTest, RestsOnlyWhenNothingWasNewForAWhile) {
  LoopPace pace({1000 * kMillisecondNs});
  const auto wait = [&](uint64_t at_ms, uint64_t news, bool may_idle = true) {
    return pace.WaitMs({at_ms * kMillisecondNs}, {.news = news, .may_idle = may_idle});
  };
  EXPECT_EQ(wait(1000, 0), 50);
  EXPECT_EQ(wait(1200, 0), 50);
  EXPECT_EQ(wait(1250, 0), 100);
  EXPECT_EQ(wait(1350, 1), 50);
  EXPECT_EQ(wait(1590, 1), 50);
  EXPECT_EQ(wait(1600, 1), 100);
  EXPECT_EQ(wait(1700, 1, /*may_idle=*/false), 50);
  EXPECT_EQ(wait(1800, 1), 100);
}

TEST(LoopPaceTest, ShortTurnsGoBeforeRest) {
  LoopPace pace({0});
  EXPECT_EQ(pace.WaitMs({5000 * kMillisecondNs}, {.news = 0, .short_iterations = true, .may_idle = true}), 5);
  EXPECT_EQ(pace.WaitMs({5005 * kMillisecondNs}, {.news = 0, .short_iterations = false, .may_idle = true}), 100);
  // News that comes during short iterations is not forgotten after them.
  EXPECT_EQ(pace.WaitMs({5010 * kMillisecondNs}, {.news = 3, .short_iterations = true, .may_idle = true}), 5);
  EXPECT_EQ(pace.WaitMs({5015 * kMillisecondNs}, {.news = 3, .short_iterations = false, .may_idle = true}), 50);
}

}  // namespace
}  // namespace clrsampler
