#include "runtime_events/probe_cost_limiter.h"

#include <gtest/gtest.h>

#include <memory>

#include "os/clock.h"
#include "runtime_events/hook_set.h"

namespace clrsampler {
namespace {

constexpr HookPart kPauses = HookPart::kSuspensions, kJit = HookPart::kCompilations;
constexpr ProcessKey kWeb{7, 1}, kOther{8, 1};

// 0.3 %: of each kind 6 ms at once.
class ProbeCostLimiterTest : public testing::Test {
 protected:
  std::unique_ptr<HookSet> MakeSet() { return std::make_unique<HookSet>(nullptr, clock_); }

  SystemClock clock_;
  const std::unique_ptr<HookSet> runtime_ = MakeSet(), jit_ = MakeSet(), second_runtime_ = MakeSet();
  ProbeCostLimiter limiter_{0.003, 2};
};

TEST_F(ProbeCostLimiterTest, AStormOfOneKindTakesNothingFromTheOther) {
  limiter_.Use(kWeb, kPauses, runtime_.get(), false);
  limiter_.Use(kWeb, kJit, jit_.get(), false);
  EXPECT_FALSE(limiter_.Spend(kWeb, kJit, {kSecondNs}, 5 * kMillisecondNs));
  EXPECT_TRUE(limiter_.Spend(kWeb, kJit, {kSecondNs}, 1 * kMillisecondNs));
  EXPECT_FALSE(limiter_.Spend(kWeb, kPauses, {kSecondNs}, 5 * kMillisecondNs));
  EXPECT_TRUE(limiter_.MustDetach(jit_.get(), kJit, {kSecondNs}));
  EXPECT_FALSE(limiter_.MustDetach(runtime_.get(), kPauses, {kSecondNs}));
}

// A single-file program has both in one file; what counts is the kind.
TEST_F(ProbeCostLimiterTest, ASetComesBackWhenNoneOfThoseThatUseItLacksItsShare) {
  for (const ProcessKey process : {kWeb, kOther}) limiter_.Use(process, kPauses, runtime_.get(), false);
  limiter_.Spend(kWeb, kPauses, {kSecondNs}, 6 * kMillisecondNs);
  limiter_.Spend(kOther, kPauses, {3 * kSecondNs}, 6 * kMillisecondNs);
  EXPECT_TRUE(limiter_.MustDetach(runtime_.get(), kPauses, {5 * kSecondNs + kMillisecondNs})) << "for the second one";
  EXPECT_FALSE(limiter_.MustDetach(runtime_.get(), kPauses, {7 * kSecondNs + kMillisecondNs}));
  EXPECT_FALSE(limiter_.MustDetach(second_runtime_.get(), kPauses, {kSecondNs})) << "neither uses it";
}

TEST_F(ProbeCostLimiterTest, WhoIsGoneHoldsNothingUp) {
  limiter_.Use(kWeb, kPauses, runtime_.get(), false);
  limiter_.Spend(kWeb, kPauses, {kSecondNs}, 6 * kMillisecondNs);
  limiter_.Forget(kWeb);
  EXPECT_FALSE(limiter_.MustDetach(runtime_.get(), kPauses, {kSecondNs}));
  EXPECT_FALSE(limiter_.Spend(kWeb, kPauses, {kSecondNs}, kSecondNs)) << "nothing is known of it";
}

TEST_F(ProbeCostLimiterTest, AProcessThatStartsHasMoreAtFirstWhateverItLearnsLater) {
  limiter_.Use(kWeb, kJit, nullptr, true);
  limiter_.Use(kWeb, kJit, jit_.get(), false);
  EXPECT_FALSE(limiter_.Spend(kWeb, kJit, {kSecondNs}, 47 * kMillisecondNs));
  EXPECT_TRUE(limiter_.Spend(kWeb, kJit, {kSecondNs}, 1 * kMillisecondNs));
}

TEST_F(ProbeCostLimiterTest, ProcessesThatAreNotFollowedPayTooAndCountForEachSet) {
  EXPECT_FALSE(limiter_.SpendOther(99, kPauses, {kSecondNs}, 5 * kMillisecondNs));
  EXPECT_FALSE(limiter_.SpendOther(98, kPauses, {kSecondNs}, 5 * kMillisecondNs)) << "each has its own";
  EXPECT_TRUE(limiter_.SpendOther(99, kPauses, {kSecondNs}, 1 * kMillisecondNs));
  EXPECT_TRUE(limiter_.MustDetach(runtime_.get(), kPauses, {kSecondNs}));
  EXPECT_TRUE(limiter_.MustDetach(second_runtime_.get(), kPauses, {kSecondNs}));
  EXPECT_FALSE(limiter_.MustDetach(jit_.get(), kJit, {kSecondNs}));
  EXPECT_FALSE(limiter_.MustDetach(runtime_.get(), kPauses, {5 * kSecondNs + kMillisecondNs}));
}

TEST_F(ProbeCostLimiterTest, ThousandsOfOthersAreNotAllRemembered) {
  EXPECT_TRUE(limiter_.SpendOther(1, kPauses, {kSecondNs}, kSecondNs));
  for (uint32_t tgid = 2; tgid < 20'000; ++tgid) limiter_.SpendOther(tgid, kPauses, {kSecondNs}, 5 * kMillisecondNs);
  EXPECT_FALSE(limiter_.SpendOther(2, kPauses, {kSecondNs}, 5 * kMillisecondNs)) << "it begins anew";
  EXPECT_TRUE(limiter_.SpendOther(1, kPauses, {kSecondNs}, 0)) << "who owes does not";
}

TEST_F(ProbeCostLimiterTest, WithoutALimitNothingRests) {
  ProbeCostLimiter free(0, 2);
  free.Use(kWeb, kPauses, runtime_.get(), false);
  EXPECT_FALSE(free.Spend(kWeb, kPauses, {kSecondNs}, kSecondNs));
  EXPECT_FALSE(free.SpendOther(99, kPauses, {kSecondNs}, kSecondNs));
  EXPECT_FALSE(free.MustDetach(runtime_.get(), kPauses, {kSecondNs}));
}

}  // namespace
}  // namespace clrsampler
