#include "output/pool_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace clrsampler {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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
    samples_.Add({pid_, tid, "shop", thread, ""}, {at_ns}, id, SampleState::kNone, microseconds);
  }
  std::vector<FrameId> WaitsForTask() {
    return {Managed("Shop.Order.Total"), Managed("System.Threading.Tasks.Task.Wait"), Mark("[task wait]")};
  }
  std::vector<FrameId> Idle() {
    return {Managed("System.Threading.LowLevelLifoSemaphore.WaitForSignal"), Mark("[idle]")};
  }
  PoolSummary Summary(const std::optional<PoolNumbers>& numbers = std::nullopt) {
    return SummarizePool(frames_, stacks_, samples_, {0}, numbers);
  }

  FrameTable frames_;
  StackTable stacks_;
  SampleLog samples_;
  uint32_t pid_ = 7;
};

TEST_F(PoolSummaryTest, AllThatWaitForTasksWhileMoreComeAreStarved) {
  for (uint32_t tid = 1; tid <= 9; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  Add(10, kSecond, WaitsForTask(), 2'000'000'000);
  AddPlain(99, kSecond, {Managed("Shop.Program.Main")});  // no worker
  const PoolSummary summary = Summary(PoolNumbers{.min_workers = 8, .max_workers = 10, .workers = 10});
  EXPECT_TRUE(summary.starved());
  EXPECT_EQ(summary.workers, 10);
  EXPECT_EQ(summary.blocked, 10);
  EXPECT_EQ(summary.came, 1);
  EXPECT_THAT(
      PoolSummaryText(summary, 3, 5),
      HasSubstr("the thread pool is starved: 10 of 10 workers wait, 10 of them in a task wait below "
                "Shop.Order.Total; the pool adds one every 3.0 s; it has all the 10 workers that it may have\n"));
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

TEST_F(PoolSummaryTest, AThreadWhoseWaitAWorkerEndsIsNoWorker) {
  const std::vector<FrameId> woken = {Managed("Shop.Consumer.Run"),
                                      Managed("System.Threading.SemaphoreSlim.Wait"),
                                      Mark("[semaphore]"),
                                      Mark("[woken by thread .NET TP Worker]"),
                                      Managed("System.Threading.LowLevelLifoSemaphore.WaitForSignal"),
                                      Managed("System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart")};
  for (uint32_t tid = 1; tid <= 32; ++tid) AddPlain(tid, kSecond, woken);
  Add(40, kSecond, WaitsForTask());
  const PoolSummary summary = Summary();
  EXPECT_EQ(summary.workers, 1);
  EXPECT_EQ(summary.blocked, 1);
}

TEST_F(PoolSummaryTest, WorkersAreToldInTheRuntimesNotationAsWell) {
  AddPlain(1, kSecond,
           {Managed("System.Threading.PortableThreadPool+WorkerThread::WorkerThreadStart()"),
            Managed("System.Threading.LowLevelLifoSemaphore::WaitForSignal(int32)"), Mark("[idle]")});
  const PoolSummary summary = Summary();
  EXPECT_EQ(summary.workers, 1);
  EXPECT_EQ(summary.idle, 1);
}

TEST_F(PoolSummaryTest, WorkThatIsLeftLyingWhileAllWaitStarvesAFullPool) {
  for (uint32_t tid = 1; tid <= 8; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  const PoolSummary summary = SummarizePool(
      frames_, stacks_, samples_, {0}, PoolNumbers{.min_workers = 2, .max_workers = 8, .workers = 8, .queued = 130});
  EXPECT_TRUE(summary.starved());
  EXPECT_THAT(
      PoolSummaryText(summary, 3, 5),
      HasSubstr("8 of 8 workers wait, 8 of them in a task wait below Shop.Order.Total; 130 work items are queued; "
                "it has all the 8 workers that it may have\n"));
}

TEST_F(PoolSummaryTest, WithoutWorkInItsQueuesAFullPoolIsNotStarved) {
  for (uint32_t tid = 1; tid <= 8; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  EXPECT_FALSE(SummarizePool(frames_, stacks_, samples_, {0}, PoolNumbers{2, 8, 8, 0}).starved());
  EXPECT_FALSE(SummarizePool(frames_, stacks_, samples_, {0}, PoolNumbers{2, 8, 8, std::nullopt}).starved());
}

TEST_F(PoolSummaryTest, WorkInTheQueuesWhileWorkersRunIsNoStarvation) {
  for (uint32_t tid = 1; tid <= 8; ++tid) Add(tid, 3 * kSecond, {Managed("Shop.Order.Total")});
  EXPECT_FALSE(SummarizePool(frames_, stacks_, samples_, {0}, PoolNumbers{2, 8, 8, 500}).starved());
}

// Below its minimum the pool lets a worker come for each work item at once.
TEST_F(PoolSummaryTest, WorkersThatComeUpToTheMinimumTellNothing) {
  for (uint32_t tid = 1; tid <= 8; ++tid) Add(tid, kSecond, WaitsForTask(), 2'000'000'000);
  const PoolSummary summary = Summary(PoolNumbers{.min_workers = 8, .max_workers = 64, .workers = 8, .queued = 0});
  EXPECT_EQ(summary.came, 8);
  EXPECT_EQ(summary.verdict, PoolVerdict::kNotStarved);
  EXPECT_THAT(PoolSummaryText(summary, 3, 5), Not(HasSubstr("adds one")));
}

TEST_F(PoolSummaryTest, OnlyWorkersBeyondTheMinimumGiveTheRate) {
  for (uint32_t tid = 1; tid <= 10; ++tid) Add(tid, kSecond, WaitsForTask(), 2'000'000'000);
  const PoolSummary summary = Summary(PoolNumbers{.min_workers = 8, .max_workers = 64, .workers = 10, .queued = 0});
  EXPECT_TRUE(summary.starved());
  EXPECT_THAT(PoolSummaryText(summary, 3, 5), HasSubstr("; the pool adds one every 1.5 s, 0 work items are queued"));
}

TEST_F(PoolSummaryTest, WithoutItsNumbersAPoolThatGrowsIsNotJudged) {
  for (uint32_t tid = 1; tid <= 9; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  Add(10, kSecond, WaitsForTask(), 2'000'000'000);
  const PoolSummary summary = Summary();
  EXPECT_EQ(summary.verdict, PoolVerdict::kNotKnown);
  EXPECT_THAT(PoolSummaryText(summary, 3, 5),
              StartsWith("whether the thread pool starves is not known: of 10 workers 0 worked, 0 were idle and 10 "
                         "waited; 1 of them came meanwhile, and the pool's own numbers were not read\n"));
}

TEST_F(PoolSummaryTest, OneIdleWorkerIsEnough) {
  for (uint32_t tid = 1; tid <= 9; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  Add(10, kSecond, WaitsForTask(), 2'000'000'000);
  Add(11, 3 * kSecond, Idle());
  EXPECT_EQ(Summary().verdict, PoolVerdict::kNotStarved);
  EXPECT_FALSE(Summary(PoolNumbers{2, 64, 11, 30}).starved());
  EXPECT_FALSE(Summary(PoolNumbers{2, 64, 11, 30, 10, 11}).starved());
}

TEST_F(PoolSummaryTest, IdleWorkersThatThePoolLetsNotWorkAreNoHelp) {
  for (uint32_t tid = 1; tid <= 7; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  // Work came to this one meanwhile.
  Add(8, kSecond, Idle(), 100);
  Add(8, 2 * kSecond, WaitsForTask(), 1'000'000'000);
  for (uint32_t tid = 9; tid <= 20; ++tid) Add(tid, 3 * kSecond, Idle());
  const PoolNumbers numbers = {2, 64, 20, 30, 8, 8};
  const PoolSummary summary = Summary(numbers);
  EXPECT_TRUE(summary.starved());
  EXPECT_THAT(
      PoolSummaryText(summary, 3, 5),
      StartsWith("the thread pool is starved: 8 of 20 workers wait, 8 of them in a task wait below "
                 "Shop.Order.Total; the pool lets 8 work for now, and 12 are idle; 30 work items are queued; it "
                 "may have 64 workers\n"));
  PoolNumbers drained = numbers;
  drained.queued = 0;
  EXPECT_FALSE(Summary(drained).starved());
  drained.queued = std::nullopt;
  EXPECT_FALSE(Summary(drained).starved());
}

// Its workers wait most of the time, and its queue was not empty at either reading. But it was in between.
TEST_F(PoolSummaryTest, WorkersThatFoundNoWorkMeanwhileLeaveNoneLying) {
  for (uint32_t tid = 1; tid <= 8; ++tid) {
    Add(tid, 2 * kSecond, WaitsForTask(), 100);
    Add(tid, kSecond / 20, Idle(), 2'000'000'000);
    Add(tid, kSecond / 2, WaitsForTask(), 2'050'000'000);
  }
  for (uint32_t tid = 9; tid <= 20; ++tid) Add(tid, 3 * kSecond, Idle());
  const PoolSummary summary = Summary(PoolNumbers{2, 64, 20, 1, 8, 8});
  EXPECT_EQ(summary.blocked, 8);
  EXPECT_EQ(summary.verdict, PoolVerdict::kNotStarved);
}

TEST_F(PoolSummaryTest, PoolsOfSeveralProcessesAreNotJudgedTogether) {
  for (uint32_t tid = 1; tid <= 8; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  pid_ = 9;
  Add(1, 3 * kSecond, Idle());  // a thread id of another pid namespace
  const PoolSummary summary = Summary(PoolNumbers{2, 8, 8, 30});
  EXPECT_EQ(summary.processes, 2);
  EXPECT_EQ(summary.workers, 9);
  EXPECT_EQ(summary.verdict, PoolVerdict::kSeveral);
  EXPECT_THAT(PoolSummaryText(summary, 3, 5),
              StartsWith("2 processes have workers of a thread pool; a recording with --pid of one judges its pool\n"));
}

TEST_F(PoolSummaryTest, AnotherProcessWithoutWorkersDoesNotMatter) {
  for (uint32_t tid = 1; tid <= 8; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  pid_ = 9;
  AddPlain(100, kSecond, {Managed("Shop.Program.Main")});
  EXPECT_TRUE(Summary(PoolNumbers{2, 8, 8, 30}).starved());
}

TEST_F(PoolSummaryTest, AProfileWithoutThreadsKnowsOfNoPool) {
  Add(0, 3 * kSecond, WaitsForTask());
  EXPECT_EQ(Summary().verdict, PoolVerdict::kNoThreads);
  EXPECT_EQ(PoolSummaryText(Summary(), 3, 5),
            "the profile does not tell threads apart, so nothing is known of a thread pool\n");
  AddPlain(5, kSecond, {Managed("Shop.Program.Main")});
  EXPECT_EQ(Summary().verdict, PoolVerdict::kNotStarved);
}

TEST_F(PoolSummaryTest, APoolThatDoesNotGrowHasWhatItNeeds) {
  for (uint32_t tid = 1; tid <= 9; ++tid) Add(tid, 3 * kSecond, WaitsForTask());
  EXPECT_FALSE(Summary().starved());
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
