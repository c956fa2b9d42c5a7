#include "pipeline/record_options.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

TEST(EventsForTest, RolesNeedBothKindsOfHooksAndNoStacks) {
  const RuntimeEvents events = EventsFor({});
  EXPECT_TRUE(events.roles);
  EXPECT_TRUE(events.pauses);
  EXPECT_TRUE(events.compilations);
  EXPECT_FALSE(events.compilation_stacks);
}

TEST(EventsForTest, WhenThreadsRunAgainIsForThoseWhoShowSinglePauses) {
  RecordOptions options;
  EXPECT_FALSE(EventsFor(options).resumed);
  EXPECT_FALSE(SamplerOptionsFor(options).resumed_hook);
  options.on_pause = [](const ObservedPause&) {};
  EXPECT_TRUE(EventsFor(options).resumed);
  EXPECT_TRUE(SamplerOptionsFor(options).resumed_hook);
}

TEST(EventsForTest, WithoutRolesNothingIsHooked) {
  RecordOptions options;
  options.roles = false;
  EXPECT_FALSE(EventsFor(options).any());
  options.mark_suspension = true;
  EXPECT_TRUE(EventsFor(options).pauses);
  EXPECT_FALSE(EventsFor(options).compilations);
}

TEST(EventsForTest, AViewOfCompilationsNeedsTheirStacksAndNoPauses) {
  RecordOptions options;
  options.view = RecordView::kJit;
  const RuntimeEvents events = EventsFor(options);
  EXPECT_TRUE(events.compilations);
  EXPECT_TRUE(events.compilation_stacks);
  EXPECT_FALSE(events.roles);
  EXPECT_FALSE(events.pauses);
}

TEST(EventsForTest, WindowsHaveAllViewsAtOnce) {
  RecordOptions options;
  options.windows.emplace();
  const RuntimeEvents events = EventsFor(options);
  EXPECT_TRUE(events.roles && events.pauses && events.compilations && events.compilation_stacks);
}

TEST(EventsForTest, WindowsHaveAllocationsWhereTheyAreWanted) {
  RecordOptions options;
  options.windows.emplace();
  EXPECT_FALSE(EventsFor(options).allocations);
  options.windows->allocations = true;
  EXPECT_TRUE(EventsFor(options).allocations);
  EXPECT_GT(ProbeCostShareFor(options), 0) << "within the budget";
}

TEST(SamplerOptionsForTest, WindowsHaveWaitsWhereTheyAreWantedAndFewerOfThem) {
  RecordOptions options;
  options.view = RecordView::kOffCpu;
  EXPECT_TRUE(SamplerOptionsFor(options).waits);
  EXPECT_EQ(SamplerOptionsFor(options).wait_thinning, 1u);
  EXPECT_FALSE(SamplerOptionsFor(options).wait_looks);
  options.windows.emplace();
  EXPECT_FALSE(SamplerOptionsFor(options).waits) << "the view has no meaning then";
  options.windows->waits = true;
  const SamplerOptions sampler = SamplerOptionsFor(options);
  EXPECT_TRUE(sampler.waits);
  EXPECT_TRUE(sampler.wait_looks);
  EXPECT_GE(sampler.wait_thinning, 5u) << "of one CPU: 100 a second at most";
  EXPECT_TRUE(EventsFor(options).pauses);
  EXPECT_GT(ProbeCostShareFor(options), 0);
}

TEST(SamplerOptionsForTest, AContinuousRunTakesAsManyStacksOfAllocationsAsSamples) {
  RecordOptions options;
  EXPECT_EQ(SamplerOptionsFor(options).allocation_thinning, 1u);
  options.windows.emplace();
  options.windows->allocations = true;
  options.frequency_hz = 1;
  EXPECT_GE(SamplerOptionsFor(options).allocation_thinning, 400u);
  options.frequency_hz = 999;
  EXPECT_GE(SamplerOptionsFor(options).allocation_thinning, 4u) << "of one CPU: 100 a second at most";
}

TEST(SamplerOptionsForTest, TheRingOfHooksIsLargeEnoughForCompilationsWithStacksAndTakesNothingFromSamples) {
  RecordOptions options;
  EXPECT_EQ(SamplerOptionsFor(options).ring_bytes, 0) << "the sampler chooses";
  EXPECT_EQ(SamplerOptionsFor(options).hook_ring_bytes, 4 << 20);
  options.view = RecordView::kJit;
  EXPECT_EQ(SamplerOptionsFor(options).ring_bytes, 0);
  EXPECT_EQ(SamplerOptionsFor(options).hook_ring_bytes, 16 << 20);
}

TEST(SamplerOptionsForTest, TheAskedSizeIsThatOfBothRings) {
  RecordOptions options;
  options.view = RecordView::kJit;
  options.ring_bytes = 1 << 20;
  EXPECT_EQ(SamplerOptionsFor(options).ring_bytes, 1 << 20);
  EXPECT_EQ(SamplerOptionsFor(options).hook_ring_bytes, 1 << 20);
}

TEST(ProbeCostShareForTest, WhoAsksForPausesOrCompilationsGetsAllOfThem) {
  RecordOptions options;
  EXPECT_EQ(ProbeCostShareFor(options), options.probe_cost_share);
  EXPECT_GT(options.probe_cost_share, 0);
  options.windows.emplace();
  EXPECT_GT(ProbeCostShareFor(options), 0);
  for (const RecordView view : {RecordView::kPause, RecordView::kSuspendDelay, RecordView::kJit}) {
    RecordOptions asks;
    asks.view = view;
    EXPECT_EQ(ProbeCostShareFor(asks), 0);
  }
  RecordOptions marks;
  marks.mark_suspension = true;
  EXPECT_EQ(ProbeCostShareFor(marks), 0);
  RecordOptions watches;
  watches.on_pause = [](const ObservedPause&) {};
  EXPECT_EQ(ProbeCostShareFor(watches), 0);
  RecordOptions compiles;
  compiles.on_compilation = [](const NamedCompilation&) {};
  EXPECT_EQ(ProbeCostShareFor(compiles), 0);
}

TEST(SamplerOptionsForTest, OnlyContinuousRunsLimitWhatHooksReport) {
  RecordOptions options;
  EXPECT_EQ(SamplerOptionsFor(options).hook_hits_a_second, 0);
  options.windows.emplace();
  EXPECT_GT(SamplerOptionsFor(options).hook_hits_a_second, 0);
  EXPECT_EQ(SamplerOptionsFor(options).hook_ring_bytes, 4 << 20);
}

TEST(SamplerOptionsForTest, TheHostIsNotFilteredAndOnlyACommandHasFollowedChildren) {
  RecordOptions options;
  EXPECT_TRUE(IsWholeHost(options));
  EXPECT_FALSE(SamplerOptionsFor(options).filter_processes);
  options.pids = {7};
  EXPECT_FALSE(IsWholeHost(options));
  EXPECT_TRUE(SamplerOptionsFor(options).filter_processes);
  EXPECT_FALSE(SamplerOptionsFor(options).follow_children);
  options = {};
  options.command = {"true"};
  EXPECT_TRUE(SamplerOptionsFor(options).filter_processes);
  EXPECT_TRUE(SamplerOptionsFor(options).follow_children);
}

}  // namespace
}  // namespace clrsampler
