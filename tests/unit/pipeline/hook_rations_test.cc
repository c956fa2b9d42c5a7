#include "pipeline/hook_rations.h"

#include <gtest/gtest.h>

#include <memory>

#include "pipeline/hook_set.h"

namespace clrsampler {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMs;
constexpr HookPart kPauses = HookPart::kSuspensions, kJit = HookPart::kCompilations;
constexpr ProcessKey kWeb{7, 1}, kOther{8, 1};

// 0.3 %: of each kind 6 ms at once.
class HookRationsTest : public testing::Test {
 protected:
  std::unique_ptr<HookSet> MakeSet() { return std::make_unique<HookSet>(nullptr, nullptr, clock_); }

  SystemClock clock_;
  const std::unique_ptr<HookSet> runtime_ = MakeSet(), jit_ = MakeSet(), second_runtime_ = MakeSet();
  HookRations rations_{0.003, 2};
};

TEST_F(HookRationsTest, AStormOfOneKindTakesNothingFromTheOther) {
  rations_.Use(kWeb, kPauses, runtime_.get(), false);
  rations_.Use(kWeb, kJit, jit_.get(), false);
  EXPECT_FALSE(rations_.Spend(kWeb, kJit, {kSecond}, 5 * kMs));
  EXPECT_TRUE(rations_.Spend(kWeb, kJit, {kSecond}, 1 * kMs));
  EXPECT_FALSE(rations_.Spend(kWeb, kPauses, {kSecond}, 5 * kMs));
  EXPECT_TRUE(rations_.MustRest(jit_.get(), kJit, {kSecond}));
  EXPECT_FALSE(rations_.MustRest(runtime_.get(), kPauses, {kSecond}));
}

// A single-file program has both in one file; what counts is the kind.
TEST_F(HookRationsTest, ASetComesBackWhenNoneOfThoseThatUseItLacksItsShare) {
  for (const ProcessKey process : {kWeb, kOther}) rations_.Use(process, kPauses, runtime_.get(), false);
  rations_.Spend(kWeb, kPauses, {kSecond}, 6 * kMs);
  rations_.Spend(kOther, kPauses, {3 * kSecond}, 6 * kMs);
  EXPECT_TRUE(rations_.MustRest(runtime_.get(), kPauses, {5 * kSecond + kMs})) << "for the second one";
  EXPECT_FALSE(rations_.MustRest(runtime_.get(), kPauses, {7 * kSecond + kMs}));
  EXPECT_FALSE(rations_.MustRest(second_runtime_.get(), kPauses, {kSecond})) << "neither uses it";
}

TEST_F(HookRationsTest, WhoIsGoneHoldsNothingUp) {
  rations_.Use(kWeb, kPauses, runtime_.get(), false);
  rations_.Spend(kWeb, kPauses, {kSecond}, 6 * kMs);
  rations_.Forget(kWeb);
  EXPECT_FALSE(rations_.MustRest(runtime_.get(), kPauses, {kSecond}));
  EXPECT_FALSE(rations_.Spend(kWeb, kPauses, {kSecond}, kSecond)) << "nothing is known of it";
}

TEST_F(HookRationsTest, AProcessThatStartsHasMoreAtFirstWhateverItLearnsLater) {
  rations_.Use(kWeb, kJit, nullptr, true);
  rations_.Use(kWeb, kJit, jit_.get(), false);
  EXPECT_FALSE(rations_.Spend(kWeb, kJit, {kSecond}, 47 * kMs));
  EXPECT_TRUE(rations_.Spend(kWeb, kJit, {kSecond}, 1 * kMs));
}

TEST_F(HookRationsTest, ProcessesThatAreNotFollowedPayTooAndCountForEachSet) {
  EXPECT_FALSE(rations_.SpendOther(99, kPauses, {kSecond}, 5 * kMs));
  EXPECT_FALSE(rations_.SpendOther(98, kPauses, {kSecond}, 5 * kMs)) << "each has its own";
  EXPECT_TRUE(rations_.SpendOther(99, kPauses, {kSecond}, 1 * kMs));
  EXPECT_TRUE(rations_.MustRest(runtime_.get(), kPauses, {kSecond}));
  EXPECT_TRUE(rations_.MustRest(second_runtime_.get(), kPauses, {kSecond}));
  EXPECT_FALSE(rations_.MustRest(jit_.get(), kJit, {kSecond}));
  EXPECT_FALSE(rations_.MustRest(runtime_.get(), kPauses, {5 * kSecond + kMs}));
}

TEST_F(HookRationsTest, ThousandsOfOthersAreNotAllRemembered) {
  EXPECT_TRUE(rations_.SpendOther(1, kPauses, {kSecond}, kSecond));
  for (uint32_t tgid = 2; tgid < 20'000; ++tgid) rations_.SpendOther(tgid, kPauses, {kSecond}, 5 * kMs);
  EXPECT_FALSE(rations_.SpendOther(2, kPauses, {kSecond}, 5 * kMs)) << "it begins anew";
  EXPECT_TRUE(rations_.SpendOther(1, kPauses, {kSecond}, 0)) << "who owes does not";
}

TEST_F(HookRationsTest, WithoutALimitNothingRests) {
  HookRations free(0, 2);
  free.Use(kWeb, kPauses, runtime_.get(), false);
  EXPECT_FALSE(free.Spend(kWeb, kPauses, {kSecond}, kSecond));
  EXPECT_FALSE(free.SpendOther(99, kPauses, {kSecond}, kSecond));
  EXPECT_FALSE(free.MustRest(runtime_.get(), kPauses, {kSecond}));
}

}  // namespace
}  // namespace clrsampler
