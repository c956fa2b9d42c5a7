#include "pipeline/turn_pace.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(TurnPaceTest, RestsOnlyWhenNothingWasNewForAWhile) {
  TurnPace pace({1000 * kMs});
  const auto wait = [&](uint64_t at_ms, uint64_t news, bool may_rest = true) {
    return pace.WaitMs({at_ms * kMs}, {.news = news, .may_rest = may_rest});
  };
  EXPECT_EQ(wait(1000, 0), 50);
  EXPECT_EQ(wait(1200, 0), 50);
  EXPECT_EQ(wait(1250, 0), 100);
  EXPECT_EQ(wait(1350, 1), 50);
  EXPECT_EQ(wait(1590, 1), 50);
  EXPECT_EQ(wait(1600, 1), 100);
  EXPECT_EQ(wait(1700, 1, /*may_rest=*/false), 50);
  EXPECT_EQ(wait(1800, 1), 100);
}

TEST(TurnPaceTest, ShortTurnsGoBeforeRest) {
  TurnPace pace({0});
  EXPECT_EQ(pace.WaitMs({5000 * kMs}, {.news = 0, .short_turns = true, .may_rest = true}), 5);
  EXPECT_EQ(pace.WaitMs({5005 * kMs}, {.news = 0, .short_turns = false, .may_rest = true}), 100);
  // What is new during short turns is not forgotten after them.
  EXPECT_EQ(pace.WaitMs({5010 * kMs}, {.news = 3, .short_turns = true, .may_rest = true}), 5);
  EXPECT_EQ(pace.WaitMs({5015 * kMs}, {.news = 3, .short_turns = false, .may_rest = true}), 50);
}

}  // namespace
}  // namespace clrsampler
