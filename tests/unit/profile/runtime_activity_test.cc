#include "profile/runtime_activity.h"
#include "unit/rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace clrsampler {
namespace {

using Kind = RuntimeEventKind;
using Role = RuntimeRoleKind;

constexpr uint64_t kGc = 1, kPreparation = 6;

class RuntimeActivityTest : public testing::Test {
 protected:
  void Add(uint64_t time, Kind kind, uint32_t tid, std::array<uint64_t, 4> arguments = {},
           const std::string& comm = "app") {
    activity_.Add({{time}, tid, comm, kind, arguments}, sees_returns_);
  }
  // "suspending", "gen1 blocking", "gen1", "background", "jit 5", "-"
  std::string At(uint64_t time, uint32_t tid, absl::string_view comm = "app") const {
    const std::optional<RuntimeRole> role = activity_.At(tid, comm, {time});
    if (!role) return "-";
    switch (role->kind) {
      case Role::kSuspending:
        return "suspending";
      case Role::kCollecting:
        return "gen" + std::to_string(role->generation) + (role->blocking ? " blocking" : "");
      case Role::kInBackground:
        return "background";
      case Role::kCompiling:
        return "jit " + std::to_string(role->compilation);
    }
    return "?";
  }
  void BlockingGc(uint64_t at, uint32_t tid, uint64_t generation) {
    Add(at, Kind::kSuspend, tid, {kGc});
    Add(at + 10, Kind::kSuspended, tid);
    Add(at + 20, Kind::kGcStart, tid, {generation});
    Add(at + 80, Kind::kGcEnd, tid, {1, generation, 0, 0});
    Add(at + 90, Kind::kRestart, tid, {1, 1});
    Add(at + 95, Kind::kRestarted, tid);
  }

  RuntimeActivity activity_;
  bool sees_returns_ = true;
};

TEST_F(RuntimeActivityTest, ABlockingCollectionIsOfTheThreadThatStoppedTheOthers) {
  BlockingGc(100, 7, 1);
  EXPECT_EQ(At(99, 7), "-");
  EXPECT_EQ(At(105, 7), "suspending");
  EXPECT_EQ(At(112, 7), "gen1 blocking");
  EXPECT_EQ(At(150, 7), "gen1 blocking");
  EXPECT_EQ(At(189, 7), "gen1 blocking");
  EXPECT_EQ(At(190, 7), "-");
  EXPECT_EQ(At(150, 8), "-");
  EXPECT_EQ(At(150, 8, ".NET BGC"), "-");
}

TEST_F(RuntimeActivityTest, WhatIsUnderWayAtAGapIsNotKnown) {
  BlockingGc(100, 7, 1);
  Add(300, Kind::kSuspend, 7, {kGc});
  Add(310, Kind::kSuspended, 7);
  Add(320, Kind::kGcStart, 7, {1});
  activity_.CompilationBegan(8, {330}, 1, 2);
  activity_.Cut();
  EXPECT_EQ(At(150, 7), "gen1 blocking") << "what had ended stays";
  EXPECT_EQ(At(340, 7), "-");
  activity_.CompilationEnded(8, {900}, 1, 2, 5);
  EXPECT_EQ(At(400, 8), "-");
}

TEST_F(RuntimeActivityTest, AGapOfOneKindLeavesTheOther) {
  Add(100, Kind::kSuspend, 7, {kGc});
  Add(110, Kind::kSuspended, 7);
  Add(120, Kind::kGcStart, 7, {1});
  activity_.CompilationBegan(8, {130}, 1, 2);
  activity_.CutCompilations();
  activity_.CompilationEnded(8, {200}, 1, 2, 5);
  EXPECT_EQ(At(150, 8), "-");
  EXPECT_EQ(At(150, 7), "gen1 blocking");
  activity_.CompilationBegan(8, {300}, 3, 4);
  activity_.CutPauses();
  activity_.CompilationEnded(8, {400}, 3, 4, 6);
  EXPECT_EQ(At(150, 7), "-");
  EXPECT_EQ(At(350, 8), "jit 6");
}

TEST_F(RuntimeActivityTest, WithoutReturnsThreadsAreStoppedUntilTheCollectionBegins) {
  sees_returns_ = false;
  Add(100, Kind::kSuspend, 7, {kGc});
  Add(105, Kind::kSuspend, 8, {kGc});  // waits for the other one
  Add(120, Kind::kGcStart, 7, {1});
  Add(180, Kind::kGcEnd, 7, {1, 1, 0, 0});
  Add(190, Kind::kRestart, 7, {1, 1});
  EXPECT_EQ(At(110, 7), "suspending");
  EXPECT_EQ(At(150, 7), "gen1 blocking");
  EXPECT_EQ(At(190, 7), "-");
  EXPECT_EQ(At(150, 8), "-") << "whether it asks or collects is not known";
}

TEST_F(RuntimeActivityTest, WithoutReturnsAndCollectionsNothingIsKnownOfAPause) {
  sees_returns_ = false;
  for (uint64_t at = 100; at < 1000; at += 100) {
    Add(at, Kind::kSuspend, 7, {kGc});
    Add(at + 90, Kind::kRestart, 7, {1, 1});
  }
  EXPECT_EQ(At(150, 7), "-");
  EXPECT_EQ(At(195, 7), "-") << "the program runs";
  Add(1000, Kind::kGcStart, 9, {0});
  EXPECT_EQ(At(1001, 9), "-") << "nobody has asked for it";
}

TEST_F(RuntimeActivityTest, WithoutReturnsTheOnlyRequestIsThatOfTheCollection) {
  sees_returns_ = false;
  Add(100, Kind::kSuspend, 7, {kGc});
  Add(120, Kind::kGcStart, 8, {0});  // another of the server's threads
  EXPECT_EQ(At(110, 7), "suspending");
  EXPECT_EQ(At(130, 7), "gen0 blocking");
}

TEST_F(RuntimeActivityTest, AServersThreadsCollectTogether) {
  BlockingGc(100, 7, 2);
  EXPECT_EQ(At(150, 8, ".NET Server GC"), "gen2 blocking");
  EXPECT_EQ(At(105, 8, ".NET Server GC"), "-");  // not stopped yet
}

TEST_F(RuntimeActivityTest, WhetherItBlocksIsNotSaidBeforeItsEnd) {
  Add(100, Kind::kSuspend, 7, {kGc});
  Add(110, Kind::kSuspended, 7);
  EXPECT_EQ(At(115, 7), "-");
  Add(120, Kind::kGcStart, 7, {2});
  EXPECT_EQ(At(130, 7), "gen2");
}

TEST_F(RuntimeActivityTest, ABackgroundCollectionGoesOnWhileTheProgramRuns) {
  Add(100, Kind::kSuspend, 7, {kGc});
  Add(110, Kind::kSuspended, 7);
  Add(120, Kind::kGcStart, 7, {2});
  Add(190, Kind::kRestart, 7, {1, 1});
  Add(195, Kind::kRestarted, 7);
  EXPECT_EQ(At(150, 7), "background");
  EXPECT_EQ(At(250, 7), "-");
  EXPECT_EQ(At(250, 9, ".NET BGC"), "background");
  BlockingGc(300, 7, 0);
  EXPECT_EQ(At(350, 7), "gen0 blocking");
  EXPECT_EQ(At(350, 9, ".NET BGC"), "background");
  Add(500, Kind::kSuspend, 9, {kPreparation}, ".NET BGC");
  Add(510, Kind::kSuspended, 9, {}, ".NET BGC");
  Add(590, Kind::kRestart, 9, {0, 1}, ".NET BGC");
  EXPECT_EQ(At(505, 9, ".NET BGC"), "suspending");
  EXPECT_EQ(At(550, 9, ".NET BGC"), "background");
  EXPECT_EQ(At(650, 9, ".NET BGC"), "background");
  Add(700, Kind::kGcEnd, 9, {5, 2, 0, 1}, ".NET BGC");
  EXPECT_EQ(At(699, 9, ".NET BGC"), "background");
  EXPECT_EQ(At(701, 9, ".NET BGC"), "-");
}

TEST_F(RuntimeActivityTest, WhereThreadsHaveNoNamesTheOneThatEndedABackgroundCollectionMakesTheNext) {
  for (const uint64_t at : {0, 1000}) {
    Add(at + 100, Kind::kSuspend, 7, {kGc});
    Add(at + 110, Kind::kSuspended, 7);
    Add(at + 120, Kind::kGcStart, 7, {2});
    Add(at + 190, Kind::kRestart, 7, {1, 1});
    Add(at + 195, Kind::kRestarted, 7);
    EXPECT_EQ(At(at + 250, 9), at == 0 ? "-" : "background");
    EXPECT_EQ(At(at + 250, 8), "-");
    Add(at + 700, Kind::kGcEnd, 9, {5, 2, 0, 1});
    EXPECT_EQ(At(at + 699, 9), "background") << "known by now";
    EXPECT_EQ(At(at + 701, 9), "-");
  }
}

TEST_F(RuntimeActivityTest, AYoungerGenerationFirstDoesNotMakeItABlockingOne) {
  Add(100, Kind::kSuspend, 7, {kGc});
  Add(110, Kind::kSuspended, 7);
  Add(120, Kind::kGcStart, 7, {2});
  Add(150, Kind::kGcEnd, 7, {4, 1, 0, 0});
  Add(190, Kind::kRestart, 7, {1, 1});
  EXPECT_EQ(At(160, 7), "background");
  EXPECT_EQ(At(250, 9, ".NET BGC"), "background");
}

TEST_F(RuntimeActivityTest, AYoungCollectionBlocksFromItsBeginningAndMayEndAsAnOlderOne) {
  Add(100, Kind::kSuspend, 7, {kGc});
  Add(110, Kind::kSuspended, 7);
  Add(120, Kind::kGcStart, 7, {0});
  EXPECT_EQ(At(130, 7), "gen0 blocking");
  Add(180, Kind::kGcEnd, 7, {4, 1, 0, 0});
  Add(190, Kind::kRestart, 7, {1, 1});
  EXPECT_EQ(At(130, 7), "gen1 blocking");
  EXPECT_EQ(At(250, 9, ".NET BGC"), "-");
}

TEST_F(RuntimeActivityTest, AnEndWithoutItsBeginningEndsNothing) {
  activity_.CompilationBegan(7, {100}, 0xa, 0xa);
  activity_.CompilationEnded(7, {200}, 0xb, 0xb, 1);
  activity_.CompilationEnded(7, {300}, 0xa, 0xb, 2);
  EXPECT_EQ(At(150, 7), "-");
  activity_.CompilationEnded(7, {400}, 0xa, 0xa, 3);
  EXPECT_EQ(At(350, 7), "jit 3");
}

TEST_F(RuntimeActivityTest, OtherPausesAreNoCollections) {
  Add(100, Kind::kSuspend, 7, {3});
  Add(110, Kind::kSuspended, 7);
  Add(190, Kind::kRestart, 7, {0, 1});
  EXPECT_EQ(At(105, 7), "suspending");
  EXPECT_EQ(At(150, 7), "-");
}

TEST_F(RuntimeActivityTest, TheInnermostCompilationCounts) {
  activity_.CompilationBegan(7, {100}, 0xa, 0xa);
  activity_.CompilationBegan(7, {200}, 0xb, 0xb);
  activity_.CompilationEnded(7, {300}, 0xb, 0xb, 1);
  activity_.CompilationEnded(7, {400}, 0xa, 0xa, 2);
  EXPECT_EQ(At(150, 7), "jit 2");
  EXPECT_EQ(At(250, 7), "jit 1");
  EXPECT_EQ(At(350, 7), "jit 2");
  EXPECT_EQ(At(400, 7), "-");
  EXPECT_EQ(At(250, 8), "-");
}

TEST_F(RuntimeActivityTest, CompilationsThatAreKnownByTheirEndsCountTheSame) {
  activity_.CompilationEnded(7, {300}, 0xb, 0xb, 1, MonotonicTime{200});
  activity_.CompilationEnded(7, {400}, 0xa, 0xa, 2, MonotonicTime{100});
  activity_.CompilationEnded(7, {600}, 0xc, 0xc, 3);
  EXPECT_EQ(At(150, 7), "jit 2");
  EXPECT_EQ(At(250, 7), "jit 1");
  EXPECT_EQ(At(350, 7), "jit 2");
  EXPECT_EQ(At(450, 7), "-");
}

TEST_F(RuntimeActivityTest, ACompilationThatHasNotEndedIsNotTold) {
  activity_.CompilationBegan(7, {100}, 0xa, 0xa);  // an exception may have ended it since
  EXPECT_EQ(At(150, 7), "-");
  activity_.CompilationBegan(7, {200}, 0xb, 0xb);
  activity_.CompilationEnded(7, {300}, 0xb, 0xb, 1);
  EXPECT_EQ(At(150, 7), "-");
  EXPECT_EQ(At(250, 7), "jit 1");
}

TEST_F(RuntimeActivityTest, ACollectionInsideACompilationIsTheCompilersWait) {
  activity_.CompilationBegan(7, {100}, 0xa, 0xa);
  BlockingGc(200, 8, 0);
  activity_.CompilationEnded(7, {400}, 0xa, 0xa, 1);
  EXPECT_EQ(At(250, 7), "jit 1");
  EXPECT_EQ(At(250, 8), "gen0 blocking");
}

TEST_F(RuntimeActivityTest, ACollectionThatACompilationCausesIsWhatIsGoingOn) {
  activity_.CompilationBegan(7, {100}, 0xa, 0xa);
  BlockingGc(200, 7, 0);
  activity_.CompilationEnded(7, {400}, 0xa, 0xa, 1);
  EXPECT_EQ(At(150, 7), "jit 1");
  EXPECT_EQ(At(250, 7), "gen0 blocking");
  EXPECT_EQ(At(350, 7), "jit 1");
}

TEST_F(RuntimeActivityTest, ForgetsWhatIsOver) {
  BlockingGc(100, 7, 0);
  activity_.CompilationBegan(8, {100}, 0xa, 0xa);
  activity_.CompilationEnded(8, {150}, 0xa, 0xa, 1);
  activity_.DropBefore({120});
  EXPECT_EQ(At(130, 8), "jit 1");
  EXPECT_EQ(At(160, 7), "gen0 blocking");
  activity_.DropBefore({1'000});
  EXPECT_TRUE(activity_.empty());
}

TEST_F(RuntimeActivityTest, HoldsLittleWhateverComes) {
  std::mt19937_64 random(7);
  size_t most = 0;
  for (uint64_t i = 0; i < uint64_t{Rounds(50'000)}; ++i) {
    const auto tid = static_cast<uint32_t>(random());
    Add(i, static_cast<Kind>(random() % 6), tid, {random() % 8, random() % 4, 0, random() % 2});
    activity_.CompilationBegan(tid, {i}, random() % 4, 1);
    if (random() % 3 == 0) activity_.CompilationEnded(tid, {i}, random() % 4, 1, i + 1);
    if (i % 97 == 0) activity_.At(tid, ".NET Server GC", {i});
    most = std::max(most, activity_.held());
  }
  EXPECT_GT(most, RuntimeActivity::kMaxPeriods) << "enough came to reach the bounds";
  EXPECT_LE(most, 3 * RuntimeActivity::kMaxPeriods + RuntimeActivity::kMaxRequests);
  activity_.DropBefore({10'000'000'000});
  activity_.DropBefore({20'000'000'000});
  EXPECT_LT(activity_.held(), most);
}

}  // namespace
}  // namespace clrsampler
