#include "output/pool_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace clrsampler {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSecond = 1'000'000;  // in microseconds, as samples have them

class PoolSummaryTest : public testing::Test {
 protected:
  FrameId Managed(const char* text) {
    return frames_.Intern(Frame{FrameKind::kJit, NameSource::kRuntimeMemory, text, "", ""});
  }
  FrameId Mark(const char* text) { return frames_.Intern(Frame{FrameKind::kMark, NameSource::kNone, text, "", ""}); }
  void Add(uint32_t tid, uint64_t microseconds, std::vector<FrameId> stack, uint64_t at_ns = 0) {
    stack.insert(stack.begin(), Managed("System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart"));
    AddPlain(tid, microseconds, stack, at_ns);
  }
  void AddPlain(uint32_t tid, uint64_t microseconds, const std::vector<FrameId>& stack, uint64_t at_ns = 0,
                const char* thread = "") {
    const StackId id = stacks_.Intern(stacks_.InternLabel("shop"), stack);
    stacks_.Add(id, microseconds);
    samples_.Add({7, tid, "shop", thread, ""}, {at_ns}, id, SampleState::kNone, microseconds);
  }
  std::vector<FrameId> WaitsForTask() {
    return {Managed("Shop.Order.Total"), Managed("System.Threading.Tasks.Task.Wait"), Mark("[task wait]")};
  }
  std::vector<FrameId> Idle() {
    return {Managed("System.Threading.LowLevelLifoSemaphore.WaitForSignal"), Mark("[idle]")};
  }
  PoolSummary Summary() { return SummarizePool(frames_, stacks_, samples_, {0}); }

  FrameTable frames_;
  StackTable stacks_;
  SampleLog samples_;
};

TEST_F(PoolSummaryTest, AllThatWaitForTasksWhileMoreComeAreStarved) {
  for (uint32_t tid = 1; tid <= 9; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  Add(10, kSecond, WaitsForTask(), 2'000'000'000);
  AddPlain(99, kSecond, {Managed("Shop.Program.Main")});  // no worker
  const PoolSummary summary = Summary();
  EXPECT_TRUE(summary.starved);
  EXPECT_EQ(summary.workers, 10);
  EXPECT_EQ(summary.blocked, 10);
  EXPECT_EQ(summary.came, 1);
  EXPECT_THAT(PoolSummaryText(summary, 3, 5),
              HasSubstr("the thread pool is starved: 10 of 10 workers wait, 10 of them in a task wait below "
                        "Shop.Order.Total; the pool adds one every 3.0 s\n"));
}

// The awaiters of their work stand in the place of the pool's own frames.
TEST_F(PoolSummaryTest, ThreadsOfThePoolAreWorkersBelowWhatAwaitsTheirWork) {
  std::vector<FrameId> stack = WaitsForTask();
  stack.insert(stack.begin(), Managed("Shop.Front.CheckoutAsync [awaits]"));
  AddPlain(1, kSecond, stack, 0, ".NET TP Worker");
  AddPlain(2, kSecond, stack, 0, "shop");
  AddPlain(3, kSecond, WaitsForTask(), 0, ".NET TP Worker");  // nothing says that it does the pool's work
  const PoolSummary summary = Summary();
  EXPECT_EQ(summary.workers, 1);
  EXPECT_EQ(summary.blocked, 1);
}

TEST_F(PoolSummaryTest, WorkThatIsLeftLyingWhileAllWaitStarvesAFullPool) {
  for (uint32_t tid = 1; tid <= 8; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  const PoolSummary summary = SummarizePool(
      frames_, stacks_, samples_, {0}, PoolNumbers{.min_workers = 2, .max_workers = 8, .workers = 8, .queued = 130});
  EXPECT_TRUE(summary.starved);
  EXPECT_THAT(
      PoolSummaryText(summary, 3, 5),
      HasSubstr("8 of 8 workers wait, 8 of them in a task wait below Shop.Order.Total; 130 work items are queued; "
                "it has all the 8 workers that it may have\n"));
}

TEST_F(PoolSummaryTest, WithoutWorkInItsQueuesAFullPoolIsNotStarved) {
  for (uint32_t tid = 1; tid <= 8; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  EXPECT_FALSE(SummarizePool(frames_, stacks_, samples_, {0}, PoolNumbers{2, 8, 8, 0}).starved);
  EXPECT_FALSE(SummarizePool(frames_, stacks_, samples_, {0}, PoolNumbers{2, 8, 8, std::nullopt}).starved);
}

TEST_F(PoolSummaryTest, WorkInTheQueuesWhileWorkersRunIsNoStarvation) {
  for (uint32_t tid = 1; tid <= 8; ++tid) Add(tid, 3 * kSecond, {Managed("Shop.Order.Total")});
  EXPECT_FALSE(SummarizePool(frames_, stacks_, samples_, {0}, PoolNumbers{2, 8, 8, 500}).starved);
}

TEST_F(PoolSummaryTest, OneIdleWorkerIsEnough) {
  for (uint32_t tid = 1; tid <= 9; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  Add(10, kSecond, WaitsForTask(), 2'000'000'000);
  Add(11, 3 * kSecond, Idle());
  EXPECT_FALSE(Summary().starved);
}

TEST_F(PoolSummaryTest, APoolThatDoesNotGrowHasWhatItNeeds) {
  for (uint32_t tid = 1; tid <= 9; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  EXPECT_FALSE(Summary().starved);
}

TEST_F(PoolSummaryTest, WorkersAreWhatTheyAreMostOfTheTime) {
  Add(1, kSecond, {Managed("Shop.Order.Total")});
  Add(1, kSecond / 2, WaitsForTask());
  Add(2, 2 * kSecond, Idle());
  Add(2, kSecond, {Managed("Shop.Order.Total")});
  // Spinning for work is idleness, too.
  Add(3, 2 * kSecond, {Managed("System.Threading.LowLevelLifoSemaphore.Wait"), Mark("[runnable]")});
  const PoolSummary summary = Summary();
  EXPECT_EQ(summary.running, 1);
  EXPECT_EQ(summary.idle, 2);
  EXPECT_EQ(summary.blocked, 0);
  EXPECT_THAT(PoolSummaryText(summary, 3, 5),
              HasSubstr("the thread pool is not starved: of 3 workers 1 worked, 2 were idle and 0 waited\n"));
}

TEST_F(PoolSummaryTest, NoWorkerIsSaid) {
  EXPECT_EQ(PoolSummaryText(Summary(), 3, 5), "no worker of the thread pool did anything in 3.0 s\n");
}

}  // namespace
}  // namespace clrsampler
