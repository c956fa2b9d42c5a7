#include "clr/memory/pool_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/clr/memory/fake_objects.h"

namespace clrsampler {
namespace {

std::vector<FakeClass> PoolClasses(uint32_t major) {
  return {
      {"System.Threading",
       "PortableThreadPool",
       "",
       {"s:ThreadPoolInstance", "_minThreads", "_maxThreads", "_separated"}},
      {"", "CacheLineSeparated", "PortableThreadPool", {"counts"}},
      {"System.Threading", "ThreadPool", "", {"s:other", "s:s_workQueue"}},
      {"System.Threading",
       "ThreadPoolWorkQueue",
       "",
       {"workItems", "highPriorityWorkItems", "lowPriorityWorkItems", "_assignableWorkItemQueues"}},
      {"", "WorkStealingQueueList", "ThreadPoolWorkQueue", {major == 8 ? "s:_queues" : "s:s_queues"}},
      {"", "WorkStealingQueue", "ThreadPoolWorkQueue", {"m_array", "m_headIndex", "m_tailIndex"}},
      {"System.Collections.Concurrent", "ConcurrentQueue`1", "", {"_tail", "_head"}},
      {"System.Collections.Concurrent",
       "ConcurrentQueueSegment`1",
       "",
       {"_slots", "_headAndTail", "_spare", "_nextSegment"}},
      {"System.Collections.Concurrent", "PaddedHeadAndTail", "", {"Head", "Tail"}},
  };
}

// A pool of 43 workers, 41 of which work, with nothing in its queues.
class PoolReaderTest : public testing::TestWithParam<RuntimeKind> {
 protected:
  PoolReaderTest() : objects_(GetParam(), PoolClasses(GetParam().version)) {
    pool_ = objects_.Object(objects_.types["PortableThreadPool"]);
    Set(objects_.statics["PortableThreadPool.ThreadPoolInstance"], pool_);
    memory().Set<uint16_t>(objects_.Place(pool_, 0), 2);
    memory().Set<uint16_t>(objects_.Place(pool_, 1), 64);
    SetCounts(41, 43, 44);
    work_ = objects_.Object(objects_.types["ThreadPoolWorkQueue"]);
    Set(objects_.statics["ThreadPool.s_workQueue"], work_);
    for (size_t i = 0; i < 3; ++i) Set(objects_.Place(work_, i), Queue({Segment(0, 0, 32)}));
    SetWorkers({});
  }

  FakeMemory& memory() { return objects_.fake.memory; }
  void Set(uint64_t address, uint64_t value) { memory().Set<uint64_t>(address, value); }
  void SetCounts(uint64_t working, uint64_t workers, uint64_t wanted) {
    Set(objects_.Place(pool_, 2), working | workers << 16 | wanted << 32 | uint64_t{0x8000} << 48);
  }
  uint64_t Segment(uint32_t head, uint32_t tail, size_t slots) {
    const uint64_t segment = objects_.Object(objects_.types["ConcurrentQueueSegment`1"]);
    Set(objects_.Place(segment, 0), objects_.Array(std::vector<uint64_t>(slots)));
    memory().Set<uint32_t>(objects_.Place(segment, 1), head);
    memory().Set<uint32_t>(objects_.Place(segment, 2), tail);
    return segment;
  }
  uint64_t Queue(const std::vector<uint64_t>& segments) {
    const uint64_t queue = objects_.Object(objects_.types["ConcurrentQueue`1"]);
    Set(objects_.Place(queue, 0), segments.back());
    Set(objects_.Place(queue, 1), segments.front());
    for (size_t i = 1; i < segments.size(); ++i) Set(objects_.Place(segments[i - 1], 3), segments[i]);
    return queue;
  }
  uint64_t WorkerQueue(uint32_t head, uint32_t tail) {
    const uint64_t queue = objects_.Object(objects_.types["WorkStealingQueue"]);
    memory().Set<uint32_t>(objects_.Place(queue, 1), head);
    memory().Set<uint32_t>(objects_.Place(queue, 2), tail);
    return queue;
  }
  void SetWorkers(const std::vector<uint64_t>& queues) {
    Set(objects_.statics[GetParam().version == 8 ? "WorkStealingQueueList._queues" : "WorkStealingQueueList.s_queues"],
        objects_.Array(queues));
  }
  std::optional<PoolState> Read() {
    if (runtime_ == nullptr) runtime_ = *objects_.fake.Attach();
    return PoolReader(*runtime_).Read();
  }
  std::optional<uint64_t> Queued() {
    const std::optional<PoolState> state = Read();
    return state ? state->queued : std::nullopt;
  }

  FakeObjects objects_;
  uint64_t pool_, work_;
  std::unique_ptr<RuntimeMemory> runtime_;
};

INSTANTIATE_TEST_SUITE_P(, PoolReaderTest, testing::Values(8, 9, 10, 11),
                         [](const auto& test) { return Text(test.param); });

TEST_P(PoolReaderTest, TellsLimitsAndCounts) {
  const std::optional<PoolState> state = Read();
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->min_workers, 2);
  EXPECT_EQ(state->max_workers, 64);
  EXPECT_EQ(state->working, 41);
  EXPECT_EQ(state->workers, 43);
  EXPECT_EQ(state->wanted, 44);
  EXPECT_EQ(state->queued, 0);
  EXPECT_FALSE(state->is_full());
  SetCounts(64, 64, 64);
  EXPECT_TRUE(Read()->is_full());
}

TEST_P(PoolReaderTest, CountsItemsOfAllQueues) {
  Set(objects_.Place(work_, 0), Queue({Segment(30, 37, 32)}));
  Set(objects_.Place(work_, 1), Queue({Segment(0, 1, 32)}));
  EXPECT_EQ(Queued(), 8);
  // The first segment takes no more items: its tail stands twice its slots further on.
  Set(objects_.Place(work_, 0), Queue({Segment(10, 32 + 64, 32), Segment(0, 5, 64)}));
  EXPECT_EQ(Queued(), 22 + 5 + 1);
  SetWorkers({WorkerQueue(3, 7), 0, WorkerQueue(9, 8)});
  EXPECT_EQ(Queued(), 28 + 4);
  Set(objects_.Place(work_, 3), objects_.Array({Queue({Segment(0, 2, 32)}), Queue({Segment(4, 4, 32)})}));
  EXPECT_EQ(Queued(), 32 + 2);
}

TEST_P(PoolReaderTest, QueuesThatCanNotBeFollowedHaveNoNumberOfItems) {
  Set(objects_.Place(work_, 0), objects_.Object(objects_.stock));
  const std::optional<PoolState> state = Read();
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->queued, std::nullopt);
}

TEST_P(PoolReaderTest, ACircleOfSegmentsEnds) {
  const uint64_t segment = Segment(0, 1, 32);
  Set(objects_.Place(segment, 3), segment);
  Set(objects_.Place(work_, 0), Queue({segment}));
  EXPECT_EQ(Queued(), std::nullopt);
}

TEST_P(PoolReaderTest, APoolThatWasNotUsedOrIsAnotherObjectIsNotRead) {
  Set(objects_.statics["PortableThreadPool.ThreadPoolInstance"], objects_.Object(objects_.stock));
  EXPECT_FALSE(Read().has_value());
  Set(objects_.statics["PortableThreadPool.ThreadPoolInstance"], 0);
  EXPECT_FALSE(Read().has_value());
}

TEST_P(PoolReaderTest, ImpossibleNumbersAreNotTold) {
  SetCounts(44, 43, 44);
  EXPECT_FALSE(Read().has_value());
  SetCounts(41, 43, 44);
  ASSERT_TRUE(Read().has_value());
  memory().Set<uint16_t>(objects_.Place(pool_, 1), 1);
  EXPECT_FALSE(Read().has_value());
}

}  // namespace
}  // namespace clrsampler
