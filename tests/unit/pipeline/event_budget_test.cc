#include "pipeline/event_budget.h"

#include <gtest/gtest.h>

#include "os/clock.h"

namespace clrsampler {
namespace {

TEST(EventBudgetTest, WithoutALimitAllAreTaken) {
  EventBudget budget;
  for (int i = 0; i < 1'000'000; ++i) ASSERT_TRUE(budget.Take({kSecondNs}));
}

TEST(EventBudgetTest, SoManyAtOnceAndThenSoManyASecond) {
  EventBudget budget(100, 1000);
  int taken = 0;
  for (int i = 0; i < 5000; ++i) taken += budget.Take({kSecondNs});
  EXPECT_EQ(taken, 1000);
  // 10,000 in each of ten seconds.
  taken = 0;
  for (uint64_t i = 1; i <= 100'000; ++i) taken += budget.Take({kSecondNs + i * kSecondNs / 10'000});
  EXPECT_NEAR(taken, 1000, 2);
}

TEST(EventBudgetTest, AfterALongPauseThereIsNoMoreThanAtOnce) {
  EventBudget budget(100, 1000);
  EXPECT_TRUE(budget.Take({kSecondNs}));
  int taken = 0;
  for (int i = 0; i < 5000; ++i) taken += budget.Take({1'000'000 * kSecondNs});
  EXPECT_EQ(taken, 1000);
}

TEST(EventBudgetTest, AStackIsMoreWorkAndTimesMayCross) {
  EventBudget budget(100, 16);
  EXPECT_TRUE(budget.Take({2 * kSecondNs}, 8));
  EXPECT_TRUE(budget.Take({1 * kSecondNs}, 7));
  EXPECT_FALSE(budget.Take({2 * kSecondNs}, 8));
  EXPECT_TRUE(budget.Take({2 * kSecondNs}));
  EXPECT_FALSE(budget.Take({1 * kSecondNs}));
}

}  // namespace
}  // namespace clrsampler
