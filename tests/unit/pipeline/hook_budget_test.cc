#include "pipeline/hook_budget.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMs;

// Ten microseconds of hits every millisecond: 1 % of a CPU. Gives the milliseconds in which hits were paid for.
int PaidFor(HookBudget& budget, uint64_t from_ms, int count) {
  int paid_for = 0;
  for (int i = 0; i < count; ++i) {
    const MonotonicTime now{(from_ms + static_cast<uint64_t>(i)) * kMs};
    if (budget.Exhausted(now)) continue;
    budget.Spend(now, 10'000);
    ++paid_for;
  }
  return paid_for;
}

TEST(HookBudgetTest, LessThanItsShareIsNeverExhausted) {
  HookBudget budget(0.011, false);
  EXPECT_EQ(PaidFor(budget, 1, 100'000), 100'000);
}

TEST(HookBudgetTest, AStormGetsItsShareInLongStretches) {
  HookBudget budget(0.003, false);
  // 12 ms at once, of which 7 us are used up a millisecond.
  EXPECT_NEAR(PaidFor(budget, 1, 3000), 1714, 3);
  // All of it has to come back, which takes 4 s, before the next one.
  EXPECT_EQ(PaidFor(budget, 3001, 2600), 0);
  EXPECT_NEAR(PaidFor(budget, 5601, 2100), 1714, 130);
  // And so in the long run: 0.3 % of it and what there was at once.
  EXPECT_NEAR(PaidFor(budget, 7701, 570'000), 570'000 * 3 / 10, 2 * 1714);
}

TEST(HookBudgetTest, WhatIsUsedUpAtOnceHasToComeBackWhole) {
  HookBudget budget(0.003, false);
  budget.Spend({kSecond}, 12 * kMs);
  EXPECT_TRUE(budget.Exhausted({kSecond}));
  EXPECT_TRUE(budget.Exhausted({kSecond + 3'999 * kMs}));
  EXPECT_FALSE(budget.Exhausted({kSecond + 4'001 * kMs}));
}

TEST(HookBudgetTest, AProcessThatStartsHasMoreOnce) {
  HookBudget budget(0.003, true);
  // 84 ms at 10 us a millisecond, and then 12 ms at 7, since some comes back.
  EXPECT_NEAR(PaidFor(budget, 1, 12'000), 8400 + 1714, 5);
  EXPECT_TRUE(budget.Exhausted({12'001 * kMs}));
  EXPECT_NEAR(PaidFor(budget, 20'000, 3000), 1714, 3);
}

TEST(HookBudgetTest, WhatIsOwedIsPaidBackAndHasABound) {
  HookBudget owes(0.003, false);
  owes.Spend({kSecond}, 36 * kMs);  // of it 24 ms that were not there
  EXPECT_TRUE(owes.Exhausted({kSecond + 11'990 * kMs}));
  EXPECT_FALSE(owes.Exhausted({kSecond + 12'010 * kMs}));
  HookBudget most(0.003, false);
  for (int i = 0; i < 100; ++i) most.Spend({kSecond}, kSecond);
  EXPECT_TRUE(most.Exhausted({kSecond + 19'990 * kMs}));
  EXPECT_FALSE(most.Exhausted({kSecond + 20'010 * kMs}));
}

TEST(HookBudgetTest, TimesOfTwoProcessorsMayCross) {
  HookBudget budget(0.003, false);
  budget.Spend({10 * kSecond}, 11 * kMs);
  budget.Spend({9 * kSecond}, 0);
  EXPECT_FALSE(budget.Exhausted({10 * kSecond}));
  budget.Spend({9 * kSecond}, 1 * kMs);
  EXPECT_TRUE(budget.Exhausted({10 * kSecond}));
}

}  // namespace
}  // namespace clrsampler
