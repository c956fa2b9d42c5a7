#include "runtime_events/hook_coverage.h"

#include <gtest/gtest.h>

#include "os/clock.h"

namespace clrsampler {
namespace {

// The factor for 100 that were seen. Counting goes on.
double Factor(HookCoverage coverage, uint64_t probes_ns) { return coverage.Take(100, probes_ns).factor; }

// The probes were there for a second, in which a CPU was busy. These are the counts when they go.
HookCoverage WithoutProbesSince1s(const ThreadCounts& counts) {
  HookCoverage coverage;
  coverage.Note(true, {0}, 0);
  coverage.Note(false, {kSecondNs}, kSecondNs);
  coverage.NoteCounts(counts);
  return coverage;
}

TEST(HookCoverageTest, WhereTheProbesAreThereAllTheTimeNothingIsEstimated) {
  HookCoverage coverage;
  coverage.Note(true, {kSecondNs}, 0);
  coverage.Note({5 * kSecondNs}, kSecondNs);
  EXPECT_EQ(coverage.share(), 1);
  EXPECT_EQ(Factor(coverage, kSecondNs / 10), 1) << "what probes cost does not matter then";
}

TEST(HookCoverageTest, TheMeasureIsCpuTime) {
  HookCoverage coverage;
  coverage.Note(true, {0}, 0);
  coverage.Note({8 * kSecondNs}, kSecondNs / 4);         // it idles for the most part
  coverage.Note(false, {9 * kSecondNs}, kSecondNs);      // it works, and the probes go
  coverage.Note(true, {12 * kSecondNs}, 4 * kSecondNs);  // it works all the time
  coverage.Note({13 * kSecondNs}, 5 * kSecondNs);
  EXPECT_DOUBLE_EQ(coverage.share(), 2.0 / 5);
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 2.5);
  // The probes took a tenth of the two seconds: the program itself needed 1.8 s for what was counted.
  EXPECT_DOUBLE_EQ(Factor(coverage, kSecondNs / 5), 1 + 3 / 1.8);
}

TEST(HookCoverageTest, AProcessThatHasEndedUsesNothingMore) {
  HookCoverage coverage;
  coverage.Note(true, {0}, kSecondNs);
  coverage.Note(false, {kSecondNs}, 2 * kSecondNs);
  coverage.Note({2 * kSecondNs}, 3 * kSecondNs);
  coverage.Note({3 * kSecondNs}, std::nullopt);
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 2);
}

TEST(HookCoverageTest, WithoutCpuTimeTheClockDecides) {
  HookCoverage coverage;
  coverage.Note(true, {0}, std::nullopt);
  coverage.Note(false, {kSecondNs}, std::nullopt);
  coverage.Note({4 * kSecondNs}, std::nullopt);
  EXPECT_DOUBLE_EQ(coverage.share(), 0.25);
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 4);
}

TEST(HookCoverageTest, ProbesThatCostNearlyAllOfItAreNotBelieved) {
  HookCoverage coverage;
  coverage.Note(true, {0}, 0);
  coverage.Note(false, {kSecondNs}, kSecondNs);
  coverage.Note({2 * kSecondNs}, 2 * kSecondNs);
  EXPECT_DOUBLE_EQ(Factor(coverage, 10 * kSecondNs), 9);
}

TEST(HookCoverageTest, EachStretchIsToldByItself) {
  HookCoverage coverage;
  coverage.Note(true, {0}, 0);
  coverage.Note(false, {kSecondNs}, kSecondNs);
  coverage.Note(true, {2 * kSecondNs}, 2 * kSecondNs);
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 2);
  coverage.Take(100, 0);
  coverage.Note({3 * kSecondNs}, 3 * kSecondNs);
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 1);
}

TEST(HookCoverageTest, AStretchInWhichTheProbesWereNeverThereBelongsToTheNext) {
  HookCoverage coverage;
  coverage.Note(false, {0}, 0);
  coverage.Note({kSecondNs}, kSecondNs);
  coverage.Take(100, 0);
  coverage.Note(true, {kSecondNs}, kSecondNs);
  coverage.Note({2 * kSecondNs}, 2 * kSecondNs);
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 2);
}

TEST(HookCoverageTest, WhatThreadsHaveCountedThemselvesIsNotEstimated) {
  HookCoverage coverage = WithoutProbesSince1s(ThreadCounts{{1, 500}, {2, 70}});
  coverage.Note({2 * kSecondNs}, 9 * kSecondNs);
  coverage.Note(true, {3 * kSecondNs}, 10 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 700}, {2, 80}, {3, 40}});  // one has begun
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 3.5) << "100 were seen, 200, 10 and 40 were not";
  coverage.Note(false, {4 * kSecondNs}, 11 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 5000}, {2, 80}});  // what was seen meanwhile does not count
  coverage.Note({5 * kSecondNs}, 12 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 5100}, {2, 80}});  // the probes are still gone
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 4.5);
}

TEST(HookCoverageTest, WhereAThreadHasEndedCpuTimeIsTheMeasure) {
  HookCoverage coverage = WithoutProbesSince1s(ThreadCounts{{1, 500}, {2, 70}});
  coverage.Note({2 * kSecondNs}, 3 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 700}});
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 3) << "twice the time of what was seen";
  coverage.Note({3 * kSecondNs}, 4 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 800}});
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 4) << "and 100 that were counted";
  coverage.Note({4 * kSecondNs}, 5 * kSecondNs);
  coverage.NoteCounts(std::nullopt);
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 5) << "they could not be read";
}

TEST(HookCoverageTest, WhatACollectionTakesBackIsNotAThreadThatHasEnded) {
  HookCoverage coverage = WithoutProbesSince1s(ThreadCounts{{1, 9'000'000}, {2, 70'000}});
  coverage.Note({2 * kSecondNs}, 9 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 8'992'000}, {2, 278'000}});
  EXPECT_DOUBLE_EQ(HookCoverage(coverage).Take(100'000, 0).factor, 3);
  coverage.Note({3 * kSecondNs}, 10 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 8'992'000}, {2, 270'000}});
  EXPECT_DOUBLE_EQ(HookCoverage(coverage).Take(100'000, 0).factor, 3) << "nothing was allocated";
  coverage.Note({4 * kSecondNs}, 11 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 1'000'000}, {2, 270'000}});
  EXPECT_DOUBLE_EQ(HookCoverage(coverage).Take(100'000, 0).factor, 4) << "the second with another thread is estimated";
}

TEST(HookCoverageTest, NoProgramAllocatesATerabyteASecond) {
  HookCoverage coverage = WithoutProbesSince1s(ThreadCounts{{1, 0}});
  coverage.Note({2 * kSecondNs}, 2 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 900'000'000'000}});
  coverage.Note({3 * kSecondNs}, 3 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, ~uint64_t{0}}});
  const HookCoverage::Whole whole = coverage.Take(100'000'000'000, 0);
  EXPECT_EQ(whole.counted, 900'000'000'000u);
  EXPECT_DOUBLE_EQ(whole.factor, 1 + 9 + 1) << "the third second is estimated by CPU time";
}

TEST(HookCoverageTest, CountsAreDueOftenWithoutProbes) {
  HookCoverage coverage;
  EXPECT_FALSE(coverage.counts_due().has_value());
  coverage.Note(true, {0}, 0);
  EXPECT_FALSE(coverage.counts_due().has_value()) << "the probes are there";
  coverage.Note(false, {kSecondNs}, 0);
  ASSERT_TRUE(coverage.counts_due().has_value());
  EXPECT_LE(coverage.counts_due()->ns, kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 500}});
  EXPECT_EQ(coverage.counts_due()->ns, kSecondNs + 20 * kMillisecondNs);
}

TEST(HookCoverageTest, CountsThatCantBeReadAreTriedLessAndLessOften) {
  HookCoverage coverage;
  coverage.Note(true, {0}, 0);
  coverage.Note(false, {kSecondNs}, 0);
  coverage.NoteCounts(std::nullopt);
  EXPECT_TRUE(coverage.CountsFailed());
  EXPECT_EQ(coverage.counts_due()->ns, 2 * kSecondNs);
  coverage.Note({2 * kSecondNs}, 0);
  EXPECT_FALSE(coverage.CountsFailed()) << "they may be tried again";
  for (int i = 0; i < 20; ++i) coverage.NoteCounts(std::nullopt);
  EXPECT_EQ(coverage.counts_due()->ns, (2 + 64) * kSecondNs);
  coverage.Note({70 * kSecondNs}, 0);
  coverage.NoteCounts(ThreadCounts{{1, 500}});
  EXPECT_FALSE(coverage.CountsFailed());
  EXPECT_LT(coverage.counts_due()->ns, 71 * kSecondNs);
}

TEST(HookCoverageTest, AThreadThatCameAndWentBetweenCountsIsEstimated) {
  HookCoverage coverage;
  coverage.NoteThreadBegan(6);  // before anything was counted
  coverage.Note(true, {0}, 0);
  coverage.Note(false, {kSecondNs}, kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 500}});
  coverage.NoteThreadBegan(7);
  coverage.NoteThreadEnded(6);
  coverage.Note({2 * kSecondNs}, 2 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 600}, {7, 300}});
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 5) << "thread 7 is still there, and 6 is none of these counts";
  coverage.NoteThreadBegan(8);
  coverage.NoteThreadEnded(8);
  coverage.Note({3 * kSecondNs}, 4 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 601}, {7, 300}});
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 7) << "nobody knows what thread 8 has done: twice the time of what was seen";
  coverage.Note({4 * kSecondNs}, 5 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 701}, {7, 300}});
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 8);
}

TEST(HookCoverageTest, ThreadsThatAreTooManyToRememberAreEstimated) {
  HookCoverage coverage = WithoutProbesSince1s(ThreadCounts{{1, 500}});
  for (uint32_t tid = 0; tid < 2000; ++tid) coverage.NoteThreadBegan(tid);
  coverage.Note({2 * kSecondNs}, 2 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 5'000}});
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 2);
}

TEST(HookCoverageTest, CountsThatAreSkippedSpoilTheTimeUpToTheNextButOne) {
  HookCoverage coverage = WithoutProbesSince1s(ThreadCounts{{1, 500}});
  coverage.Note({2 * kSecondNs}, 2 * kSecondNs);
  coverage.SkipCounts();
  coverage.Note({3 * kSecondNs}, 3 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 900}});
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 3);
  coverage.Note({4 * kSecondNs}, 4 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 1000}});
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 4);
}

TEST(HookCoverageTest, AProcessThatIdlesHasNoNewCounts) {
  HookCoverage coverage;
  coverage.Note(true, {0}, 0);
  coverage.Note(false, {kSecondNs}, kSecondNs);
  EXPECT_FALSE(coverage.CountsAreUnchanged()) << "they were never read";
  coverage.NoteCounts(ThreadCounts{{1, 500}});
  coverage.Note({2 * kSecondNs}, kSecondNs);
  ASSERT_TRUE(coverage.CountsAreUnchanged());
  coverage.NoteUnchangedCounts();
  coverage.Note({3 * kSecondNs}, 2 * kSecondNs);
  EXPECT_FALSE(coverage.CountsAreUnchanged());
  coverage.NoteCounts(ThreadCounts{{1, 600}});
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 2);
  coverage.Note(true, {4 * kSecondNs}, 2 * kSecondNs);
  coverage.NoteUnchangedCounts();
  EXPECT_FALSE(coverage.CountsAreUnchanged()) << "with probes they are not kept";
}

TEST(HookCoverageTest, WhatIsNotCountedYetIsEstimated) {
  HookCoverage coverage = WithoutProbesSince1s(ThreadCounts{{1, 500}});
  coverage.Note({2 * kSecondNs}, 2 * kSecondNs);
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 2);
  coverage.NoteCounts(ThreadCounts{{1, 900}});
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 5);
}

TEST(HookCoverageTest, CountsOfTheNextStretchBeginWhereThoseOfThisOneEnd) {
  HookCoverage coverage = WithoutProbesSince1s(ThreadCounts{{1, 500}});
  coverage.Note({2 * kSecondNs}, 2 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 600}});
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 2);
  EXPECT_EQ(coverage.Take(100, 0).counted, 100u);
  coverage.Note(true, {3 * kSecondNs}, 3 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 900}});
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 1) << "the probes have only come";
  coverage.Note({4 * kSecondNs}, 4 * kSecondNs);
  EXPECT_DOUBLE_EQ(Factor(coverage, 0), 4);
}

TEST(HookCoverageTest, WhatWasEstimatedIsNotCountedOnceMore) {
  HookCoverage coverage = WithoutProbesSince1s({{1, 500}});
  coverage.Note({2 * kSecondNs}, 2 * kSecondNs);
  EXPECT_DOUBLE_EQ(coverage.Take(100, 0).factor, 2) << "by CPU time";
  EXPECT_FALSE(coverage.CountsAreUnchanged());
  coverage.NoteCounts(ThreadCounts{{1, 900}});
  coverage.Note(true, {3 * kSecondNs}, 3 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 950}});
  coverage.Note({4 * kSecondNs}, 4 * kSecondNs);
  EXPECT_EQ(coverage.Take(100, 0).counted, 50u);
}

TEST(HookCoverageTest, WhatNoStackStandsForIsToldByItself) {
  HookCoverage coverage = WithoutProbesSince1s(ThreadCounts{{1, 0}});
  coverage.Note(true, {2 * kSecondNs}, 2 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 99'000}});
  EXPECT_EQ(coverage.Take(0, 0).without_stack, 0u) << "less than the collector reports at a time: it waits";
  coverage.Note(false, {3 * kSecondNs}, 3 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 99'000}});
  coverage.Note(true, {4 * kSecondNs}, 4 * kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 100'000}});
  const HookCoverage::Whole whole = coverage.Take(0, 0);
  EXPECT_EQ(whole.without_stack, 100'000u);
  EXPECT_EQ(whole.counted, 100'000u);
  EXPECT_EQ(coverage.Take(0, 0, /*ends=*/true).without_stack, 0u);
}

TEST(HookCoverageTest, AProcessThatEndsTellsAll) {
  HookCoverage coverage;
  coverage.Note(false, {0}, 0);
  coverage.NoteCounts(ThreadCounts{{1, 0}});
  coverage.Note({kSecondNs}, kSecondNs);
  coverage.NoteCounts(ThreadCounts{{1, 500}});
  EXPECT_EQ(coverage.Take(0, 0).without_stack, 0u) << "the probes were never there: those that come may see it";
  EXPECT_EQ(coverage.Take(0, 0, /*ends=*/true).without_stack, 500u);
}

}  // namespace
}  // namespace clrsampler
