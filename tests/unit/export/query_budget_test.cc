#include "export/query_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

constexpr CpuAllowance kTenth = {.share = 0.1, .burst_ns = kSecondNs};

TEST(CpuBucketTest, WhatIsOwedIsPaidByWaiting) {
  CpuBucket bucket(kTenth, 0);
  bucket.Spend(kSecondNs, 0);
  EXPECT_EQ(bucket.WaitNs(0), 0u) << "as much at once as there is";
  bucket.Spend(500 * kMillisecondNs, 0);
  EXPECT_EQ(bucket.WaitNs(0), 5 * kSecondNs);
  EXPECT_EQ(bucket.WaitNs(3 * kSecondNs), 2 * kSecondNs);
  EXPECT_EQ(bucket.WaitNs(5 * kSecondNs), 0u);
  EXPECT_FALSE(bucket.Full(14 * kSecondNs));
  EXPECT_TRUE(bucket.Full(15 * kSecondNs));
}

TEST(CpuBucketTest, RestAddsNoMoreThanTheBurst) {
  CpuBucket bucket(kTenth, 0);
  bucket.Spend(2 * kSecondNs, 1000 * kSecondNs);
  EXPECT_EQ(bucket.WaitNs(1000 * kSecondNs), 10 * kSecondNs);
}

TEST(CpuBucketTest, AClockThatGoesBackEarnsNothing) {
  CpuBucket bucket(kTenth, 100 * kSecondNs);
  bucket.Spend(2 * kSecondNs, 100 * kSecondNs);
  EXPECT_EQ(bucket.WaitNs(50 * kSecondNs), 10 * kSecondNs);
  bucket.Spend(0, 50 * kSecondNs);
  EXPECT_EQ(bucket.WaitNs(105 * kSecondNs), 5 * kSecondNs);
}

// Whatever is asked for, whenever: a minute has no more than its burst, its share and the last question.
TEST(QueryBudgetTest, NoMinuteHasMoreThanItsPart) {
  const QueryLimits limits;
  QueryBudget budget(limits, 0);
  std::mt19937_64 random(20);
  uint64_t now = 0, spent = 0, longest = 0;
  while (now < 60 * kSecondNs) {
    std::string client = absl::StrCat("ip ", random() % 5);
    if (!budget.Enter(client, now)) {
      const uint64_t cost = random() % (100 * kMillisecondNs);
      longest = std::max(longest, cost);
      now += cost;
      spent += cost;
      budget.Spend(client, cost, now);
      budget.Leave(client);
    }
    now += random() % (10 * kMillisecondNs);
  }
  EXPECT_LE(spent, limits.all.burst_ns + static_cast<uint64_t>(limits.all.share * static_cast<double>(now)) + longest);
  EXPECT_GT(spent, limits.all.burst_ns);
}

TEST(QueryBudgetTest, AClientThatSpendsKeepsNoOtherOut) {
  QueryBudget budget({}, 0);
  std::string greedy = "uid 1000", modest = "uid 1001";
  budget.Spend(greedy, 900 * kMillisecondNs, 0);
  const std::optional<HttpAnswer> refusal = budget.Enter(greedy, 0);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 429u);
  EXPECT_THAT(refusal->headers, ::testing::Contains(std::pair<std::string, std::string>("Retry-After", "4")));
  EXPECT_FALSE(budget.Enter(modest, 0));
  EXPECT_FALSE(budget.Enter(greedy, 4 * kSecondNs));
}

TEST(QueryBudgetTest, AllTogetherHaveOneToo) {
  QueryBudget budget({}, 0);
  for (int i = 0; i < 3; ++i) budget.Spend(absl::StrCat("uid ", i), 500 * kMillisecondNs, 0);
  std::string other = "uid 7";
  const std::optional<HttpAnswer> refusal = budget.Enter(other, 0);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 503u);
  EXPECT_THAT(refusal->headers, ::testing::Contains(std::pair<std::string, std::string>("Retry-After", "17")));
}

TEST(QueryBudgetTest, WhatWaitsIsChargedBeforeItBegins) {
  QueryBudget budget({}, 0);
  std::string client = "ip 10.0.0.7";
  EXPECT_FALSE(budget.Enter(client, 0));
  EXPECT_FALSE(budget.Enter(client, 0));
  budget.Spend(client, 2 * kSecondNs, 0);
  EXPECT_TRUE(budget.Begin(client, 0));
}

TEST(QueryBudgetTest, PlacesInTheQueueAreOfAClientAndOfAll) {
  QueryLimits limits;
  limits.waiting = 3;
  limits.client_waiting = 2;
  QueryBudget budget(limits, 0);
  std::string one = "uid 1", two = "uid 2", three = "uid 3";
  EXPECT_FALSE(budget.Enter(one, 0));
  EXPECT_FALSE(budget.Enter(one, 0));
  EXPECT_EQ(budget.Enter(one, 0)->status, 429u);
  EXPECT_FALSE(budget.Enter(two, 0));
  EXPECT_EQ(budget.Enter(three, 0)->status, 503u);
  budget.Leave(one);
  EXPECT_FALSE(budget.Enter(three, 0));
}

TEST(QueryBudgetTest, TheTableOfClientsIsBounded) {
  QueryLimits limits;
  limits.known_clients = 10;
  QueryBudget budget(limits, 0);
  for (int i = 0; i < 1000; ++i) {
    std::string client = absl::StrCat("ip 10.0.0.", i);
    budget.Spend(client, kMillisecondNs / 1000, 0);
    EXPECT_LE(budget.known_clients(), 11u);
  }
  // Those who find no place are one client together, which waits as one.
  std::string further = "ip 10.9.9.9";
  EXPECT_FALSE(budget.Enter(further, 0));
  EXPECT_EQ(further, "");
  budget.Spend(further, 900 * kMillisecondNs, 0);
  budget.Leave(further);
  std::string another = "ip 10.8.8.8";
  EXPECT_EQ(budget.Enter(another, 0)->status, 429u);
  // Those who have rested make room.
  another = "ip 10.8.8.8";
  EXPECT_FALSE(budget.Enter(another, 1000 * kSecondNs));
  EXPECT_EQ(another, "ip 10.8.8.8");
}

}  // namespace
}  // namespace clrsampler
