#include "export/connection_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"

namespace clrsampler {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

ConnectionLimits Limits() { return {4, 2, 10 * kSecondNs, 60 * kSecondNs, kSecondNs}; }

std::vector<std::pair<ConnectionTable::Id, std::string>> Judged(ConnectionTable& table, uint64_t now) {
  std::vector<std::pair<ConnectionTable::Id, std::string>> result;
  for (const ConnectionTable::Verdict& verdict : table.Judge(now)) result.emplace_back(verdict.id, verdict.end);
  return result;
}

TEST(ConnectionTableTest, WhoTricklesIsEndedAfterTheWholeTime) {
  ConnectionTable table(Limits());
  const auto slow = table.Open("", 0);
  const auto working = table.Open("", 0);
  table.RequestComplete(working, kSecondNs);
  EXPECT_THAT(Judged(table, 9 * kSecondNs), UnorderedElementsAre());
  EXPECT_THAT(Judged(table, 10 * kSecondNs), UnorderedElementsAre(Pair(slow, "slow_request")));
  EXPECT_THAT(Judged(table, 300 * kSecondNs), UnorderedElementsAre())
      << "one that works for its client stays; told once";
}

TEST(ConnectionTableTest, TheNextRequestHasItsOwnTime) {
  ConnectionTable table(Limits());
  const auto one = table.Open("", 0);
  table.RequestComplete(one, 9 * kSecondNs);
  table.AnswerBegun(one, 9 * kSecondNs);
  table.AnswerTaken(one, 12 * kSecondNs);
  EXPECT_THAT(Judged(table, 21 * kSecondNs), UnorderedElementsAre());
  EXPECT_THAT(Judged(table, 22 * kSecondNs), UnorderedElementsAre(Pair(one, "slow_request")));
}

TEST(ConnectionTableTest, WhoDoesNotTakeItsAnswerIsEnded) {
  ConnectionTable table(Limits());
  const auto one = table.Open("", 0);
  table.RequestComplete(one, kSecondNs);
  table.AnswerBegun(one, 2 * kSecondNs);
  EXPECT_THAT(Judged(table, 61 * kSecondNs), UnorderedElementsAre());
  EXPECT_THAT(Judged(table, 62 * kSecondNs), UnorderedElementsAre(Pair(one, "slow_client")));
}

TEST(ConnectionTableTest, ThoseWhoWaitLongestMakeRoom) {
  ConnectionTable table(Limits());
  std::vector<ConnectionTable::Id> ids;
  for (uint64_t i = 0; i < 6; ++i) ids.push_back(table.Open("", i * kSecondNs / 10));
  EXPECT_THAT(Judged(table, kSecondNs / 2), UnorderedElementsAre()) << "their requests may be on the way";
  table.RequestComplete(ids[0], kSecondNs);
  EXPECT_THAT(Judged(table, 2 * kSecondNs), UnorderedElementsAre(Pair(ids[1], "evicted"), Pair(ids[2], "evicted")));
}

TEST(ConnectionTableTest, WhereNoneWaitsThoseThatTakeTheirAnswerSlowlyMakeRoom) {
  ConnectionTable table(Limits());
  std::vector<ConnectionTable::Id> ids;
  for (uint64_t i = 0; i < 6; ++i) {
    ids.push_back(table.Open("", 0));
    table.RequestComplete(ids[i], i + 1);
    if (i > 0) table.AnswerBegun(ids[i], kSecondNs + i);
  }
  EXPECT_THAT(Judged(table, 3 * kSecondNs / 2), UnorderedElementsAre()) << "they have had half a second";
  EXPECT_THAT(Judged(table, 3 * kSecondNs), UnorderedElementsAre(Pair(ids[1], "evicted"), Pair(ids[2], "evicted")));
}

TEST(ConnectionTableTest, AnAddressHasItsShare) {
  ConnectionTable table(Limits());
  table.Open("10.0.0.1", 0);
  table.Open("10.0.0.1", 0);
  table.Open("10.0.0.2", 0);
  const auto third = table.Open("10.0.0.1", 0);
  EXPECT_THAT(Judged(table, 1), UnorderedElementsAre(Pair(third, "address_limit")));
  table.Close(third);
  EXPECT_THAT(Judged(table, 2), UnorderedElementsAre());
}

TEST(ConnectionTableTest, ToldApartIsWhoNeverAsked) {
  ConnectionTable table(Limits());
  const auto silent = table.Open("", 0), asked = table.Open("", 0), slow = table.Open("", 0);
  table.RequestComplete(asked, 1);
  EXPECT_TRUE(table.Close(silent));
  EXPECT_FALSE(table.Close(asked));
  Judged(table, 20 * kSecondNs);
  EXPECT_FALSE(table.Close(slow)) << "it is counted as slow already";
  EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace clrsampler
