#include "export/series_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

constexpr uint64_t kWindow = 10'000'000'000;

SeriesCandidate One(uint32_t pid, double activity, bool ended = false, bool eager = false) {
  const std::string key = absl::StrCat("app-", pid);
  return {key, key, activity, ended, eager, pid};
}

// Windows follow each other; all processes run on unless they are said to be gone.
class SlotsTest : public ::testing::Test {
 protected:
  SeriesSlots::Decision Next(const std::vector<SeriesCandidate>& candidates) {
    now_ += kWindow;
    return slots_.Next(candidates, now_);
  }
  uint64_t now_ = 0;
  std::set<uint32_t> gone_;
  SeriesSlots slots_{2, 12 * kWindow, 60 * kWindow, [this](uint32_t pid) { return !gone_.contains(pid); }};
};

TEST_F(SlotsTest, WhoIsSeenTwiceGetsASlotAndKeepsIt) {
  EXPECT_EQ(Next({One(1, 5)}).slot_of[0], std::nullopt);
  const SeriesSlots::Decision second = Next({One(1, 5)});
  ASSERT_TRUE(second.slot_of[0]);
  ASSERT_EQ(second.taken.size(), 1u);
  for (int i = 0; i < 100; ++i) {
    const SeriesSlots::Decision later = Next({One(1, 0)});
    EXPECT_EQ(later.slot_of[0], second.slot_of[0]);
    EXPECT_TRUE(later.taken.empty() && later.freed.empty());
  }
}

TEST_F(SlotsTest, TheEagerGetOneAtOnceWhileThereIsRoom) {
  EXPECT_TRUE(Next({One(1, 5, false, true)}).slot_of[0]);
  EXPECT_FALSE(Next({One(2, 5, false, true)}).slot_of[0]) << "half of the slots are taken";
}

TEST_F(SlotsTest, WhoHasEndedAtFirstSightNeverGetsOne) {
  EXPECT_FALSE(Next({One(1, 5, true, true)}).slot_of[0]);
  EXPECT_FALSE(Next({}).taken.size());
}

TEST_F(SlotsTest, TheMostActiveWin) {
  const std::vector<SeriesCandidate> all = {One(1, 1), One(2, 3), One(3, 2)};
  Next(all);
  const SeriesSlots::Decision decision = Next(all);
  EXPECT_FALSE(decision.slot_of[0]);
  EXPECT_TRUE(decision.slot_of[1] && decision.slot_of[2]);
}

TEST_F(SlotsTest, AHolderYieldsOnlyToOneThatIsMuchMoreActive) {
  for (int i = 0; i < 20; ++i) Next({One(1, 10), One(2, 10)});
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Next({One(1, 10), One(2, 10), One(3, 15)}).slot_of[2]);
  bool took = false;
  for (int i = 0; i < 20 && !took; ++i) {
    const SeriesSlots::Decision decision = Next({One(1, 10), One(2, 11), One(3, 30)});
    if (!decision.slot_of[2]) continue;
    took = true;
    EXPECT_FALSE(decision.slot_of[0]) << "the least active one goes";
    EXPECT_EQ(decision.freed, std::vector<size_t>{*decision.slot_of[2]});
  }
  EXPECT_TRUE(took);
}

TEST_F(SlotsTest, AfterTheEndASlotStaysForTheGraceTime) {
  Next({One(1, 5)});
  const std::optional<size_t> slot = Next({One(1, 5)}).slot_of[0];
  EXPECT_EQ(Next({One(1, 5, true)}).slot_of[0], slot) << "its last amounts are still its own";
  for (int i = 0; i < 11; ++i) EXPECT_TRUE(Next({}).freed.empty());
  EXPECT_EQ(Next({}).freed, std::vector<size_t>{*slot});
}

// Containers: nobody says whether they are still there.
TEST(QuietSlotsTest, WhoComesBackAfterALongSilenceKeepsItsSlot) {
  SeriesSlots slots(2, 12 * kWindow, 60 * kWindow, nullptr);
  uint64_t now = 0;
  const auto next = [&](const std::vector<SeriesCandidate>& candidates) {
    now += kWindow;
    return slots.Next(candidates, now);
  };
  next({One(1, 5)});
  ASSERT_TRUE(next({One(1, 5)}).slot_of[0]);
  for (int i = 0; i < 65; ++i) next({});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(next({One(1, 5)}).slot_of[0]) << i;
}

TEST_F(SlotsTest, TheDeadMakeRoomFirst) {
  Next({One(1, 100), One(2, 1)});
  const SeriesSlots::Decision before = Next({One(1, 100), One(2, 1)});
  Next({One(1, 100, true), One(2, 1), One(3, 0.1)});
  const SeriesSlots::Decision after = Next({One(2, 1), One(3, 0.1)});
  EXPECT_EQ(after.slot_of[1], before.slot_of[0]);
  EXPECT_EQ(after.slot_of[0], before.slot_of[1]);
}

TEST_F(SlotsTest, AnEndThatNobodyToldUsIsNoticed) {
  Next({One(1, 5)});
  const std::optional<size_t> slot = Next({One(1, 5)}).slot_of[0];
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Next({}).freed.empty()) << "it is idle";
  gone_.insert(1);
  std::vector<size_t> freed;
  for (int i = 0; i < 13 && freed.empty(); ++i) freed = Next({}).freed;
  EXPECT_EQ(freed, std::vector<size_t>{*slot});
}

TEST_F(SlotsTest, AUsedPidWithTheSameNameTakesTheLabelOver) {
  SeriesCandidate old_one = One(1, 5), new_one = One(1, 5);
  old_one.key = "1@100";
  new_one.key = "1@200";
  Next({old_one});
  const std::optional<size_t> slot = Next({old_one}).slot_of[0];
  Next({new_one});
  const SeriesSlots::Decision decision = Next({new_one});
  ASSERT_TRUE(decision.slot_of[0]);
  EXPECT_EQ(decision.freed, std::vector<size_t>{*slot});
}

SeriesCandidate Named(const std::string& name) {
  SeriesCandidate candidate = One(1, 5);
  candidate.label = name;
  return candidate;
}

TEST_F(SlotsTest, AProcessThatIsCalledOtherwiseTakesItsSlotAnew) {
  Next({Named("sh-1")});
  const SeriesSlots::Decision before = Next({Named("sh-1")});
  ASSERT_EQ(before.taken.size(), 1u);
  EXPECT_EQ(before.taken[0].label, "sh-1");
  const SeriesSlots::Decision after = Next({One(2, 1), Named("dotnet-1")});
  EXPECT_EQ(after.slot_of[1], before.slot_of[0]);
  EXPECT_EQ(after.freed, std::vector<size_t>{*before.slot_of[0]}) << "the series of the old name go first";
  ASSERT_EQ(after.taken.size(), 1u);
  EXPECT_EQ(after.taken[0].slot, *before.slot_of[0]);
  EXPECT_EQ(after.taken[0].candidate, 1u);
  EXPECT_EQ(after.taken[0].label, "dotnet-1");
  const SeriesSlots::Decision later = Next({Named("dotnet-1")});
  EXPECT_TRUE(later.taken.empty() && later.freed.empty());
}

TEST_F(SlotsTest, AProcessKeepsItsLabelAfterSixteenChanges) {
  std::vector<std::string> labels;
  for (int i = 0; i < 100; ++i) {
    const SeriesSlots::Decision decision = Next({Named(absl::StrCat("name", i, "-1"))});
    for (const SeriesSlots::Taken& taken : decision.taken) labels.push_back(taken.label);
    EXPECT_EQ(decision.slot_of[0].has_value(), i > 0);
  }
  EXPECT_EQ(labels.size(), 16u) << "the first name had no slot";
  EXPECT_EQ(labels.back(), "name16-1");
}

TEST_F(SlotsTest, ANameThatAnotherHolderHadWithTheSamePidTakesItOver) {
  SeriesCandidate ended = Named("dotnet-1");
  ended.key = "1@100";
  for (int i = 0; i < 2; ++i) Next({ended});
  for (int i = 0; i < 2; ++i) Next({Named("sh-1")});
  const SeriesSlots::Decision decision = Next({Named("dotnet-1")});
  EXPECT_EQ(decision.freed.size(), 2u);
  ASSERT_EQ(decision.taken.size(), 1u);
  EXPECT_EQ(decision.taken[0].slot, decision.slot_of[0]);
  EXPECT_TRUE(Next({Named("dotnet-1"), One(2, 1)}).taken.empty());
  EXPECT_EQ(Next({Named("dotnet-1"), One(2, 1)}).taken.size(), 1u) << "one slot is free";
}

TEST_F(SlotsTest, ShortLivesByTheThousandNeverTakeASlot) {
  for (uint32_t i = 0; i < 1000; ++i) {
    std::vector<SeriesCandidate> candidates;
    for (uint32_t j = 0; j < 20; ++j) candidates.push_back(One(1000 + i * 20 + j, 1, true, true));
    candidates.push_back(One(1, 0.5));
    const SeriesSlots::Decision decision = Next(candidates);
    for (uint32_t j = 0; j < 20; ++j) ASSERT_FALSE(decision.slot_of[j]);
    ASSERT_EQ(decision.slot_of[20].has_value(), i > 0);
  }
}

}  // namespace
}  // namespace clrsampler
