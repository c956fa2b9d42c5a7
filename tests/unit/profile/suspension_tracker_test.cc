#include "profile/suspension_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace clrsampler {
namespace {

using Kind = RuntimeEventKind;
using testing::ElementsAre;

constexpr uint64_t kGcReason = 1, kRejit = 3, kPreparationReason = 6;
constexpr uint64_t kInduced = 1, kAllocLoh = 4;

class SuspensionTrackerTest : public testing::Test {
 protected:
  // Events of one thread after another, 10 us apart.
  void Add(Kind kind, uint32_t tid, std::array<uint64_t, 4> arguments = {}, const std::string& comm = "app") {
    now_ += 10'000;
    tracker_.Add(
        {{now_}, tid, comm, kind, arguments}, [this](const Pause& pause) { pauses_.push_back(pause); },
        [this](const GcDone& done) { collections_.push_back(done); });
  }
  void Stop(uint32_t tid, uint64_t reason, const std::string& comm = "app") {
    Add(Kind::kSuspend, tid, {reason}, comm);
    Add(Kind::kSuspended, tid, {}, comm);
  }
  void Go(uint32_t tid, bool finished_gc = true) {
    Add(Kind::kRestart, tid, {finished_gc, 1});
    Add(Kind::kRestarted, tid);
  }
  void ExpectNothingOdd() {
    EXPECT_EQ(tracker_.counters().unexpected, 0u);
    EXPECT_EQ(tracker_.counters().cut, 0u);
  }

  uint64_t now_ = 1'000'000;
  SuspensionTracker tracker_{/*sees_resumed=*/true};
  std::vector<Pause> pauses_;
  std::vector<GcDone> collections_;
};

TEST_F(SuspensionTrackerTest, ABlockingCollection) {
  Stop(7, kGcReason);
  Add(Kind::kGcStart, 7, {0, 1});
  Add(Kind::kGcEnd, 7, {41, 1, kInduced, 0});  // it has become a generation 1
  Go(7);
  ASSERT_EQ(pauses_.size(), 1u);
  const Pause& pause = pauses_[0];
  EXPECT_EQ(pause.kind, PauseKind::kBlockingGc);
  EXPECT_EQ(pause.generation, 1u);
  EXPECT_EQ(pause.gc_index, 41u);
  EXPECT_EQ(GcReasonText(pause.gc_reason), "induced");
  EXPECT_TRUE(pause.induced);
  EXPECT_EQ(pause.tid, 7u);
  EXPECT_EQ(pause.suspend_ns(), 10'000u);
  EXPECT_EQ(pause.pause_ns(), 40'000u);
  EXPECT_EQ(pause.resumed->ns - pause.requested.ns, 50'000u);
  EXPECT_THAT(tracker_.counters().collections, ElementsAre(0, 1, 0));
  ExpectNothingOdd();
}

TEST_F(SuspensionTrackerTest, APauseGoesOnUntilAllAreLetGo) {
  EXPECT_EQ(tracker_.PausedSince({now_}), std::nullopt);
  Add(Kind::kSuspend, 7, {kGcReason});
  const MonotonicTime requested{now_};
  EXPECT_EQ(tracker_.PausedSince({now_}), std::nullopt);  // threads run
  Add(Kind::kSuspended, 7);
  EXPECT_EQ(tracker_.PausedSince({now_}), requested);
  Add(Kind::kRestart, 7, {1, 1});
  EXPECT_EQ(tracker_.PausedSince({now_}), requested);
  EXPECT_EQ(tracker_.PausedSince({now_ + 2 * kSecondNs}), std::nullopt);  // the last event is lost
  Add(Kind::kRestarted, 7);
  EXPECT_EQ(tracker_.PausedSince({now_}), std::nullopt);
}

TEST_F(SuspensionTrackerTest, WithoutReturnsAPauseBeginsWithTheFirstThatIsSeenInIt) {
  tracker_.WithoutReturns();
  Add(Kind::kSuspend, 7, {kGcReason});
  Add(Kind::kGcStart, 7, {0, 1});
  Add(Kind::kGcEnd, 7, {41, 1, kInduced, 0});
  Add(Kind::kRestart, 7, {1, 1});
  ASSERT_EQ(pauses_.size(), 1u);
  EXPECT_EQ(pauses_[0].kind, PauseKind::kBlockingGc);
  EXPECT_EQ(pauses_[0].gc_index, 41u);
  EXPECT_EQ(pauses_[0].suspend_ns(), 10'000u);
  EXPECT_EQ(pauses_[0].pause_ns(), 30'000u);
  EXPECT_FALSE(pauses_[0].resumed.has_value());
  // One without a collection.
  Add(Kind::kSuspend, 7, {kRejit});
  Add(Kind::kRestart, 7, {0, 1});
  ASSERT_EQ(pauses_.size(), 2u);
  EXPECT_EQ(pauses_[1].pause_ns(), 10'000u);
  ExpectNothingOdd();
}

TEST_F(SuspensionTrackerTest, WithoutReturnsTheThreadThatAskedFirstIsTheOneThatStopsOthers) {
  tracker_.WithoutReturns();
  Add(Kind::kSuspend, 7, {kGcReason});
  Add(Kind::kSuspend, 8, {kGcReason});  // waits for the first
  Add(Kind::kGcStart, 9, {0, 1});       // a thread of the server collector
  Add(Kind::kGcEnd, 9, {41, 0, kInduced, 0});
  Add(Kind::kRestart, 7, {1, 1});
  ASSERT_EQ(pauses_.size(), 1u);
  EXPECT_EQ(pauses_[0].tid, 7u);
  Add(Kind::kGcStart, 9, {0, 1});
  Add(Kind::kGcEnd, 9, {42, 0, kInduced, 0});
  Add(Kind::kRestart, 8, {1, 1});
  ASSERT_EQ(pauses_.size(), 2u);
  EXPECT_EQ(pauses_[1].tid, 8u);
  ExpectNothingOdd();
}

TEST_F(SuspensionTrackerTest, ABackgroundCollectionHasTwoPausesAndEndsOutsideOfThem) {
  Stop(7, kGcReason);
  Add(Kind::kGcStart, 7, {2, 0});
  Go(7);
  // A blocking one of a lower generation comes in between.
  Stop(7, kGcReason);
  Add(Kind::kGcStart, 7, {0, 0});
  Add(Kind::kGcEnd, 7, {12, 0, 0, 0});
  Go(7);
  Stop(9, kPreparationReason, ".NET BGC");
  Go(9, false);
  Add(Kind::kGcEnd, 9, {11, 2, kAllocLoh, 1}, ".NET BGC");
  ASSERT_EQ(pauses_.size(), 3u);
  EXPECT_EQ(pauses_[0].kind, PauseKind::kBackgroundGcInitial);
  EXPECT_EQ(pauses_[0].generation, 2u);
  EXPECT_EQ(pauses_[0].gc_index, std::nullopt);
  EXPECT_EQ(pauses_[1].kind, PauseKind::kBlockingGc);
  EXPECT_EQ(pauses_[1].generation, 0u);
  EXPECT_EQ(pauses_[2].kind, PauseKind::kBackgroundGcFinal);
  ASSERT_EQ(collections_.size(), 2u);
  EXPECT_EQ(collections_[1].index, 11u);
  EXPECT_TRUE(collections_[1].background);
  EXPECT_THAT(tracker_.counters().collections, ElementsAre(1, 0, 1));
  EXPECT_EQ(tracker_.counters().background, 1u);
  ExpectNothingOdd();
}

// As in programs of NativeAOT, whose threads are all called what the program is called.
TEST_F(SuspensionTrackerTest, WithoutNamesTheFinalPauseIsThatOfACollectionWhichGoesOn) {
  Stop(9, kPreparationReason);
  Go(9, false);
  Stop(7, kGcReason);
  Add(Kind::kGcStart, 7, {2, 0});
  Go(7);
  Stop(9, kPreparationReason);  // says that it is done with a collection: this one is not
  Go(9, true);
  Stop(9, kPreparationReason);
  Go(9, false);
  Add(Kind::kGcEnd, 9, {11, 2, kAllocLoh, 1});
  Stop(9, kPreparationReason);
  Go(9, false);
  ASSERT_EQ(pauses_.size(), 5u);
  EXPECT_EQ(pauses_[0].kind, PauseKind::kOther) << "nothing has begun";
  EXPECT_EQ(pauses_[1].kind, PauseKind::kBackgroundGcInitial);
  EXPECT_EQ(pauses_[2].kind, PauseKind::kOther);
  EXPECT_EQ(pauses_[3].kind, PauseKind::kBackgroundGcFinal);
  EXPECT_EQ(pauses_[3].generation, 2u);
  EXPECT_EQ(pauses_[4].kind, PauseKind::kOther) << "it has ended";
}

// Seen with server GC of .NET 10: one start, of generation 2, and in the same pause the end of another collection.
TEST_F(SuspensionTrackerTest, ABackgroundCollectionMayCollectAYoungerGenerationFirst) {
  Stop(7, kGcReason, ".NET Server GC");
  Add(Kind::kGcStart, 8, {2, 0}, ".NET Server GC");
  Add(Kind::kGcEnd, 8, {64, 0, 0, 0}, ".NET Server GC");
  Add(Kind::kGcEnd, 8, {65, 0, 0, 0}, ".NET Server GC");  // there is only one
  Go(7);
  Stop(9, kPreparationReason, ".NET BGC");
  Go(9, false);
  Add(Kind::kGcEnd, 9, {63, 2, kAllocLoh, 1}, ".NET BGC");
  ASSERT_EQ(pauses_.size(), 2u);
  EXPECT_EQ(pauses_[0].kind, PauseKind::kBackgroundGcInitial);
  EXPECT_EQ(pauses_[0].generation, 2u);
  EXPECT_EQ(pauses_[0].gc_index, std::nullopt);
  ASSERT_TRUE(pauses_[0].younger.has_value());
  EXPECT_EQ(pauses_[0].younger->index, 64u);
  EXPECT_EQ(pauses_[0].younger->generation, 0u);
  EXPECT_EQ(pauses_[1].kind, PauseKind::kBackgroundGcFinal);
  EXPECT_FALSE(pauses_[1].younger.has_value());
  EXPECT_THAT(tracker_.counters().collections, ElementsAre(1, 0, 1));
  EXPECT_EQ(tracker_.counters().unexpected, 1u);
}

// DiagGCStart calls plain GC.Collect induced and none of its other modes.
TEST_F(SuspensionTrackerTest, EveryModeOfGcCollectIsInduced) {
  for (uint64_t reason = 0; reason < 18; ++reason) {
    Stop(7, kGcReason);
    Add(Kind::kGcStart, 7, {2, 0});
    Add(Kind::kGcEnd, 7, {reason, 2, reason, 0});
    Go(7);
    EXPECT_EQ(pauses_.back().induced, GcReasonText(reason).substr(0, 7) == "induced") << GcReasonText(reason);
  }
  ExpectNothingOdd();
}

TEST_F(SuspensionTrackerTest, AServerThreadThatPreparesChangesTheNumberOfHeaps) {
  Stop(5, kPreparationReason, ".NET Server GC");
  Go(5);
  Stop(5, kRejit);
  Go(5);
  ASSERT_EQ(pauses_.size(), 2u);
  EXPECT_EQ(pauses_[0].kind, PauseKind::kHeapCountChange);
  EXPECT_EQ(pauses_[0].generation, std::nullopt);
  EXPECT_EQ(pauses_[1].kind, PauseKind::kOther);
  EXPECT_EQ(SuspendReasonText(pauses_[1].reason), "rejit");
  ExpectNothingOdd();
}

// Where the hooks of collections are refused, nothing is known of any; it must not read as if there had been none.
TEST_F(SuspensionTrackerTest, ThereIsNoCollectionOnlyWhereOneWouldBeSeen) {
  Stop(5, kGcReason);
  Go(5);
  Stop(5, kGcReason);
  Add(Kind::kGcStart, 5, {0, 0});
  Add(Kind::kGcEnd, 5, {1, 0, 0, 0});
  Go(5);
  Stop(5, kGcReason);
  Go(5);
  ASSERT_EQ(pauses_.size(), 3u);
  EXPECT_EQ(pauses_[0].kind, PauseKind::kOther);
  EXPECT_EQ(pauses_[1].kind, PauseKind::kBlockingGc);
  EXPECT_EQ(pauses_[2].kind, PauseKind::kNoGc);
  ExpectNothingOdd();
}

TEST_F(SuspensionTrackerTest, APauseWhoseLastEventWasLostIsCounted) {
  for (int i = 0; i < 2; ++i) {
    Stop(7, kGcReason);
    Add(Kind::kRestart, 7, {1, 0});
  }
  EXPECT_EQ(tracker_.counters().cut, 1u);
}

TEST(SuspensionTrackerWithoutResumedTest, APauseIsCompleteWhenItsThreadsAreLetGo) {
  SuspensionTracker tracker(/*sees_resumed=*/false);
  uint64_t now = 1'000'000;
  std::vector<Pause> pauses;
  std::vector<GcDone> collections;
  const auto add = [&](Kind kind, std::array<uint64_t, 4> arguments = {}) {
    now += 10'000;
    tracker.Add(
        {{now}, 7, "app", kind, arguments}, [&](const Pause& pause) { pauses.push_back(pause); },
        [&](const GcDone& done) { collections.push_back(done); });
  };
  for (int i = 0; i < 2; ++i) {
    add(Kind::kSuspend, {kGcReason});
    add(Kind::kRestart, {0, 0});  // a try that is given up
    add(Kind::kSuspended);
    add(Kind::kGcStart, {0, 1});
    add(Kind::kGcEnd, {41, 0, kInduced, 0});
    add(Kind::kRestart, {1, 1});
    EXPECT_EQ(tracker.Stopped(), nullptr);
  }
  ASSERT_EQ(pauses.size(), 2u);
  EXPECT_EQ(pauses[1].kind, PauseKind::kBlockingGc);
  EXPECT_EQ(pauses[1].aborted, 1u);
  EXPECT_EQ(pauses[1].pause_ns(), 50'000u);
  EXPECT_EQ(pauses[1].resumed, std::nullopt);
  EXPECT_EQ(collections.size(), 2u);
  tracker.Finish([&](const Pause& pause) { pauses.push_back(pause); });
  EXPECT_EQ(pauses.size(), 2u);
  EXPECT_EQ(tracker.counters().pauses, 2u);
  EXPECT_EQ(tracker.counters().cut + tracker.counters().unexpected, 0u);
}

// With server GC the collection begins on a thread of the collector, not on the one that asked.
TEST_F(SuspensionTrackerTest, EventsOfACollectionMayComeFromAnyThread) {
  Stop(7, kGcReason);
  Add(Kind::kGcStart, 20, {2, 0}, ".NET Server GC");
  Add(Kind::kGcEnd, 21, {3, 2, 0, 0}, ".NET Server GC");
  Go(7);
  ASSERT_EQ(pauses_.size(), 1u);
  EXPECT_EQ(pauses_[0].kind, PauseKind::kBlockingGc);
  EXPECT_EQ(pauses_[0].gc_index, 3u);
  ExpectNothingOdd();
}

TEST_F(SuspensionTrackerTest, OfSeveralThatAskOneStopsTheOthersWait) {
  Add(Kind::kSuspend, 7, {kGcReason});
  Add(Kind::kSuspend, 8, {kRejit});
  ASSERT_NE(tracker_.Suspending(), nullptr);
  EXPECT_EQ(tracker_.Suspending()->tid, 7u);
  Add(Kind::kSuspended, 7);
  EXPECT_EQ(tracker_.Suspending(), nullptr) << "nobody is asked to stop who does not stand already";
  EXPECT_EQ(tracker_.Stopped()->tid, 7u);
  Add(Kind::kRestart, 7, {1, 1});
  EXPECT_EQ(tracker_.Suspending()->tid, 8u);
  Add(Kind::kSuspended, 8);  // before the first call has returned
  Add(Kind::kRestarted, 7);
  Go(8);
  ASSERT_EQ(pauses_.size(), 2u);
  EXPECT_EQ(pauses_[0].tid, 7u);
  EXPECT_EQ(pauses_[1].tid, 8u);
  EXPECT_EQ(pauses_[0].delay_ns(), pauses_[0].suspend_ns());
  EXPECT_EQ(pauses_[1].suspend_ns(), 30'000u);
  EXPECT_EQ(pauses_[1].delay_ns(), 10'000u) << "before that, all stood still for the other one";
  ExpectNothingOdd();
}

TEST_F(SuspensionTrackerTest, ATryThatIsGivenUpBelongsToThePauseThatFollows) {
  Add(Kind::kSuspend, 7, {kGcReason});
  Add(Kind::kRestart, 7, {0, 0});
  Add(Kind::kRestarted, 7);
  Add(Kind::kSuspended, 7);
  Go(7);
  ASSERT_EQ(pauses_.size(), 1u);
  EXPECT_EQ(pauses_[0].aborted, 1u);
  EXPECT_EQ(pauses_[0].suspend_ns(), 30'000u);
  EXPECT_EQ(tracker_.counters().aborted, 1u);
  ExpectNothingOdd();
}

TEST_F(SuspensionTrackerTest, APauseThatWasUnderWayAtTheBeginningIsCutAndNotOdd) {
  Add(Kind::kSuspended, 7);
  Add(Kind::kGcEnd, 7, {1, 0, 0, 0});
  Go(7);
  EXPECT_TRUE(pauses_.empty());
  EXPECT_EQ(tracker_.counters().unexpected, 0u);
  EXPECT_GT(tracker_.counters().cut, 0u);
}

// Probes come back in the middle of a pause, while another thread asks for the next one.
TEST_F(SuspensionTrackerTest, WhoWaitsForThePauseThatWasUnderWayIsNotDelayedByAnybodyElse) {
  Add(Kind::kSuspend, 8, {kGcReason});
  Add(Kind::kGcEnd, 7, {1, 0, 0, 0});
  Add(Kind::kRestart, 7, {1, 1});
  const uint64_t resumed = now_;
  Add(Kind::kRestarted, 7);
  Add(Kind::kSuspended, 8);
  Add(Kind::kGcStart, 8, {0, 0});
  Add(Kind::kGcEnd, 8, {2, 0, 0, 0});
  Go(8);
  ASSERT_EQ(pauses_.size(), 1u);
  EXPECT_EQ(pauses_[0].delay_ns(), pauses_[0].stopped.ns - resumed);
  EXPECT_EQ(tracker_.counters().unexpected, 0u);
  EXPECT_EQ(tracker_.counters().cut, 3u);
}

TEST_F(SuspensionTrackerTest, WhatDoesNotFitIsCountedAndChangesNothing) {
  Stop(7, kGcReason);
  Add(Kind::kGcStart, 7, {0, 0});
  Add(Kind::kGcStart, 7, {1, 0});  // a second one
  Add(Kind::kRestart, 8, {1, 1});  // by another thread
  Add(Kind::kGcEnd, 7, {1, 0, 0, 0});
  Go(7);
  Add(Kind::kGcStart, 7, {1, 0});  // outside any pause
  Add(Kind::kRestarted, 9);
  ASSERT_EQ(pauses_.size(), 1u);
  EXPECT_EQ(pauses_[0].generation, 0u);
  EXPECT_EQ(tracker_.counters().unexpected, 4u);
}

TEST_F(SuspensionTrackerTest, AtTheEndAPauseWithoutItsLastEventIsGivenOut) {
  Stop(7, kGcReason);
  Add(Kind::kGcStart, 7, {0, 0});
  Add(Kind::kGcEnd, 7, {1, 0, 0, 0});
  Add(Kind::kRestart, 7, {1, 1});
  Add(Kind::kSuspend, 8, {kGcReason});
  tracker_.Finish([this](const Pause& pause) { pauses_.push_back(pause); });
  ASSERT_EQ(pauses_.size(), 1u);
  EXPECT_EQ(pauses_[0].kind, PauseKind::kBlockingGc);
  EXPECT_FALSE(pauses_[0].resumed.has_value());
  EXPECT_EQ(tracker_.counters().cut, 1u);
}

// A pause that has begun before the gap and one that ends behind it are not one long pause.
TEST_F(SuspensionTrackerTest, AfterAGapNothingIsPutTogetherAcrossIt) {
  Stop(7, kGcReason);
  tracker_.Finish([this](const Pause& pause) { pauses_.push_back(pause); });
  Add(Kind::kGcEnd, 7, {9, 0, 0, 0});
  Add(Kind::kRestart, 7, {1, 1});
  Add(Kind::kRestarted, 7);
  EXPECT_TRUE(pauses_.empty());
  EXPECT_EQ(tracker_.counters().unexpected, 0u) << "it was to be expected";
  Stop(7, kGcReason);
  Add(Kind::kRestart, 7, {1, 1});
  Add(Kind::kRestarted, 7);
  EXPECT_EQ(pauses_.size(), 1u);
}

// Whatever a process makes its runtime's functions report.
TEST_F(SuspensionTrackerTest, AnyEventsGivePausesWhosePartsAreInOrder) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 200'000; ++i) {
    Add(static_cast<Kind>(random() % 6), static_cast<uint32_t>(random() % 5),
        {random() % 9, random() % 3, random() % 20, random() % 2}, random() % 3 == 0 ? ".NET BGC" : "x");
  }
  EXPECT_GT(pauses_.size(), 1000u);
  EXPECT_GT(tracker_.counters().unexpected, 1000u);
  for (const Pause& pause : pauses_) {
    ASSERT_LE(pause.requested, pause.stopped);
    ASSERT_LE(pause.stopped, pause.resume_begun);
    ASSERT_LE(pause.resume_begun, pause.resumed.value_or(MonotonicTime::Max()));
  }
}

TEST_F(SuspensionTrackerTest, ThreadsThatAskAndNeverStopTakeNoMoreThanABound) {
  for (uint32_t tid = 0; tid < 100'000; ++tid) Add(Kind::kSuspend, tid, {kGcReason});
  EXPECT_GT(tracker_.counters().cut, 90'000u);
}

TEST(PauseTextTest, UnknownNumbersAreOther) {
  EXPECT_EQ(SuspendReasonText(1), "gc");
  EXPECT_EQ(SuspendReasonText(6), "gc-preparation");
  EXPECT_EQ(SuspendReasonText(8), "profiler");
  EXPECT_EQ(SuspendReasonText(9), "other");
  EXPECT_EQ(SuspendReasonText(0xFFFFFFFF), "other");
  EXPECT_EQ(GcReasonText(17), "induced-aggressive");
  EXPECT_EQ(GcReasonText(18), "other");
  EXPECT_EQ(GcReasonText(std::nullopt), "");
}

}  // namespace
}  // namespace clrsampler
