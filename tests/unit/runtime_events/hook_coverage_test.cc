#include "runtime_events/hook_coverage.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

TEST(HookCoverageTest, WhereTheProbesAreThereAllTheTimeNothingIsEstimated) {
  HookCoverage coverage;
  coverage.Note(true, {kSecond}, 0);
  coverage.Note({5 * kSecond}, kSecond);
  EXPECT_EQ(coverage.share(), 1);
  EXPECT_EQ(coverage.Factor(kSecond / 10), 1) << "what probes cost does not matter then";
}

TEST(HookCoverageTest, TheMeasureIsCpuTime) {
  HookCoverage coverage;
  coverage.Note(true, {0}, 0);
  coverage.Note({8 * kSecond}, kSecond / 4);         // it idles for the most part
  coverage.Note(false, {9 * kSecond}, kSecond);      // it works, and the probes go
  coverage.Note(true, {12 * kSecond}, 4 * kSecond);  // it works all the time
  coverage.Note({13 * kSecond}, 5 * kSecond);
  EXPECT_DOUBLE_EQ(coverage.share(), 2.0 / 5);
  EXPECT_DOUBLE_EQ(coverage.Factor(0), 2.5);
  // The probes took a tenth of the two seconds: the program itself needed 1.8 s for what was counted.
  EXPECT_DOUBLE_EQ(coverage.Factor(kSecond / 5), 1 + 3 / 1.8);
}

TEST(HookCoverageTest, AProcessThatHasEndedUsesNothingMore) {
  HookCoverage coverage;
  coverage.Note(true, {0}, kSecond);
  coverage.Note(false, {kSecond}, 2 * kSecond);
  coverage.Note({2 * kSecond}, 3 * kSecond);
  coverage.Note({3 * kSecond}, std::nullopt);
  EXPECT_DOUBLE_EQ(coverage.Factor(0), 2);
}

TEST(HookCoverageTest, WithoutCpuTimeTheClockDecides) {
  HookCoverage coverage;
  coverage.Note(true, {0}, std::nullopt);
  coverage.Note(false, {kSecond}, std::nullopt);
  coverage.Note({4 * kSecond}, std::nullopt);
  EXPECT_DOUBLE_EQ(coverage.share(), 0.25);
  EXPECT_DOUBLE_EQ(coverage.Factor(0), 4);
}

TEST(HookCoverageTest, ProbesThatCostNearlyAllOfItAreNotBelieved) {
  HookCoverage coverage;
  coverage.Note(true, {0}, 0);
  coverage.Note(false, {kSecond}, kSecond);
  coverage.Note({2 * kSecond}, 2 * kSecond);
  EXPECT_DOUBLE_EQ(coverage.Factor(10 * kSecond), 9);
}

TEST(HookCoverageTest, EachStretchIsToldByItself) {
  HookCoverage coverage;
  coverage.Note(true, {0}, 0);
  coverage.Note(false, {kSecond}, kSecond);
  coverage.Note(true, {2 * kSecond}, 2 * kSecond);
  EXPECT_DOUBLE_EQ(coverage.Factor(0), 2);
  coverage.Restart();
  coverage.Note({3 * kSecond}, 3 * kSecond);
  EXPECT_DOUBLE_EQ(coverage.Factor(0), 1);
}

TEST(HookCoverageTest, AStretchInWhichTheProbesWereNeverThereBelongsToTheNext) {
  HookCoverage coverage;
  coverage.Note(false, {0}, 0);
  coverage.Note({kSecond}, kSecond);
  coverage.Restart();
  coverage.Note(true, {kSecond}, kSecond);
  coverage.Note({2 * kSecond}, 2 * kSecond);
  EXPECT_DOUBLE_EQ(coverage.Factor(0), 2);
}

}  // namespace
}  // namespace clrsampler
