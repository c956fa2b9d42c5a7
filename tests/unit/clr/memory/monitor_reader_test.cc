#include "clr/memory/monitor_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/clr/memory/fake_objects.h"

namespace clrsampler {
namespace {

using testing::Eq;
using testing::Optional;

// Ids of threads as the kernel has them, and as the runtime counts them.
constexpr uint32_t kFirst = 101, kSecond = 102, kThird = 103;
constexpr uint32_t kFirstManaged = 4, kSecondManaged = 5, kThirdManaged = 6;

std::vector<FakeClass> Lock() {
  return {{"System.Threading", "Lock", "", {"_waitEvent", "_owningThreadId", "_state", "_recursionCount"}}};
}

// A monitor of a Stock, which `kSecond` holds and `kFirst` waits for.
class NativeMonitorTest : public testing::TestWithParam<RuntimeKind> {
 protected:
  NativeMonitorTest() : objects_(GetParam()) {
    first_ = objects_.Thread(kFirst, kFirstManaged);
    second_ = objects_.Thread(kSecond, kSecondManaged);
    stock_ = objects_.Object(objects_.stock);
    block_ = objects_.SyncBlock(stock_);
    objects_.Hold(block_, kSecond, 2);
    objects_.Block(first_, block_);
  }

  std::optional<LockWait> Wait(uint32_t tid = kFirst) {
    if (runtime_ == nullptr) runtime_ = *objects_.fake.Attach();
    MonitorReader reader(*runtime_);
    EXPECT_TRUE(reader.Refresh().ok());
    return reader.WaitOf(tid, {});
  }

  FakeMemory& memory() { return objects_.fake.memory; }

  FakeObjects objects_;
  uint64_t first_, second_, stock_, block_;
  std::unique_ptr<RuntimeMemory> runtime_;
};

INSTANTIATE_TEST_SUITE_P(, NativeMonitorTest, testing::Values(8, 9, 10),
                         [](const auto& test) { return Text(test.param); });

TEST_P(NativeMonitorTest, TellsWhoHoldsIt) {
  EXPECT_THAT(
      Wait(),
      Optional(LockWait{
          .lock = block_, .object = stock_, .type = "Shop.Stock", .held = true, .owner_tid = kSecond, .entered = 2}));
  EXPECT_EQ(Wait(kSecond), std::nullopt);
  EXPECT_EQ(Wait(999), std::nullopt);
}

TEST_P(NativeMonitorTest, OneThatWasLeftJustNowIsHeldByNobody) {
  objects_.Hold(block_, 0, 0);
  const std::optional<LockWait> wait = Wait();
  ASSERT_TRUE(wait.has_value());
  EXPECT_FALSE(wait->held);
  EXPECT_EQ(wait->owner_tid, 0);
}

TEST_P(NativeMonitorTest, AHolderThatTheRuntimeDoesNotListIsNotNamed) {
  objects_.Hold(block_, 777, 1);
  const std::optional<LockWait> wait = Wait();
  ASSERT_TRUE(wait.has_value());
  EXPECT_TRUE(wait->held);
  EXPECT_EQ(wait->owner_tid, 0);
}

TEST_P(NativeMonitorTest, AnOwnerThatBeganMeanwhileIsLookedUpAnew) {
  runtime_ = *objects_.fake.Attach();
  MonitorReader reader(*runtime_);
  EXPECT_TRUE(reader.Refresh().ok());
  objects_.Thread(kThird, kThirdManaged);
  objects_.Hold(block_, kThird, 1);
  const std::optional<LockWait> wait = reader.WaitOf(kFirst, {});
  ASSERT_TRUE(wait.has_value());
  EXPECT_EQ(wait->owner_tid, kThird);
}

TEST_P(NativeMonitorTest, AnOwnerThatIsNotYetWrittenIsToBeReadAgain) {
  objects_.Hold(block_, kSecond, 1);
  memory().Set<uint64_t>(block_ + objects_.fake.layout.sync_block.owner_os_id, 0);
  const std::optional<LockWait> wait = Wait();
  ASSERT_TRUE(wait.has_value());
  EXPECT_TRUE(wait->changing);
}

TEST_P(NativeMonitorTest, WaitingForAPulseIsNotWaitingForTheMonitor) {
  objects_.Block(first_, block_, 1);
  EXPECT_EQ(Wait(), std::nullopt);
}

TEST_P(NativeMonitorTest, AWaitMayHaveATimeLimit) {
  ASSERT_TRUE(Wait().has_value());
  EXPECT_FALSE(Wait()->limited);
  objects_.Block(first_, block_, 0, 10'000);
  ASSERT_TRUE(Wait().has_value());
  EXPECT_TRUE(Wait()->limited);
}

TEST_P(NativeMonitorTest, NothingIsToldOfWhatDoesNotFitTogether) {
  ASSERT_TRUE(Wait().has_value());
  memory().Set<uint32_t>(stock_ - 4, 0x0C00'0001);  // a hash code
  EXPECT_EQ(Wait(), std::nullopt);
  memory().Set<uint32_t>(stock_ - 4, 0x0800'0002);  // another block's index
  EXPECT_EQ(Wait(), std::nullopt);
  memory().Set<uint32_t>(stock_ - 4, 0x0800'0001);
  ASSERT_TRUE(Wait().has_value());
  memory().Set<uint32_t>(block_ + objects_.fake.layout.sync_block.table_index, 5);
  EXPECT_EQ(Wait(), std::nullopt);
}

TEST_P(NativeMonitorTest, AThreadThatIsGoneWaitsForNothing) {
  runtime_ = *objects_.fake.Attach();
  MonitorReader reader(*runtime_);
  EXPECT_TRUE(reader.Refresh().ok());
  ASSERT_TRUE(reader.WaitOf(kFirst, {}).has_value());
  memory().Set<uint64_t>(first_ + objects_.fake.layout.thread_list.os_id, 0xBAADF00D);
  EXPECT_EQ(reader.WaitOf(kFirst, {}), std::nullopt);
}

TEST_P(NativeMonitorTest, ACircleOfThreadsEnds) {
  const auto& at = objects_.fake.layout.thread_list;
  memory().Set<uint64_t>(first_ + at.next, at.leads_to_threads ? first_ : first_ + at.next);
  EXPECT_TRUE(Wait().has_value());
}

// A thread that is on no list seems to wait for nothing.
TEST_P(NativeMonitorTest, AListThatCantBeReadIsAnError) {
  const auto& at = objects_.fake.layout.thread_list;
  runtime_ = *objects_.fake.Attach();
  MonitorReader reader(*runtime_);
  memory().Set<uint64_t>(first_ + at.next, 0x7F00'0000'0000);  // not mapped
  const absl::Status cut = reader.Refresh();
  EXPECT_TRUE(absl::IsUnavailable(cut)) << cut;
  EXPECT_TRUE(reader.WaitOf(kFirst, {}).has_value()) << "what was read of it counts";
  memory().Set<uint64_t>(first_ + at.next, 0);
  EXPECT_TRUE(reader.Refresh().ok());
  memory().Set<uint64_t>(first_ + at.os_id, 0);
  memory().Set<uint64_t>(second_ + at.os_id, 0xBAADF00D);
  EXPECT_TRUE(absl::IsUnavailable(reader.Refresh())) << "a runtime has a thread";
}

// Since 11 a monitor is a Lock, and so it is where programs use Lock on 9 and 10.
class ManagedLockTest : public testing::TestWithParam<RuntimeKind> {
 protected:
  ManagedLockTest() : objects_(GetParam(), Lock()) {
    objects_.Thread(kFirst, kFirstManaged);
    objects_.Thread(kSecond, kSecondManaged);
    objects_.Thread(kThird, kThirdManaged);
    lock_ = NewLock(kSecond);
    stack_ = objects_.fake.memory.Allocate(512);
    frames_ = {{stack_, stack_ + 256}, {stack_, stack_ + 512}, false};
    Push(3, lock_);
  }

  // The holder has the number that the version keeps of it.
  uint64_t NewLock(uint32_t os_id, bool locked = true) {
    const uint32_t holder = GetParam().version >= 11 ? os_id - kFirst + kFirstManaged : os_id;
    const uint64_t lock = objects_.Object(objects_.types["Lock"]);
    objects_.fake.memory.Set<uint32_t>(objects_.Place(lock, 1), holder);
    objects_.fake.memory.Set<uint32_t>(objects_.Place(lock, 2), locked ? 0x81 : 0x80);
    return lock;
  }
  void Push(size_t word, uint64_t value) { objects_.fake.memory.Set<uint64_t>(stack_ + 8 * word, value); }
  std::optional<LockWait> Wait() {
    if (runtime_ == nullptr) runtime_ = *objects_.fake.Attach();
    MonitorReader reader(*runtime_);
    EXPECT_TRUE(reader.Refresh().ok());
    return reader.WaitOf(kFirst, frames_);
  }

  FakeObjects objects_;
  uint64_t lock_, stack_;
  WaitFrames frames_;
  std::unique_ptr<RuntimeMemory> runtime_;
};

INSTANTIATE_TEST_SUITE_P(, ManagedLockTest, testing::Values(9, 10, 11),
                         [](const auto& test) { return Text(test.param); });

TEST_P(ManagedLockTest, TellsWhoHoldsIt) {
  EXPECT_THAT(Wait(), Optional(LockWait{.lock = lock_,
                                        .object = lock_,
                                        .type = "System.Threading.Lock",
                                        .held = true,
                                        .owner_tid = kSecond,
                                        .entered = 1}));
}

TEST_P(ManagedLockTest, ItsFramesSayWhetherTheWaitHasALimit) {
  frames_.limited = true;
  ASSERT_TRUE(Wait().has_value());
  EXPECT_TRUE(Wait()->limited);
}

TEST_P(ManagedLockTest, OfTwoThatFitNoneIsTold) {
  Push(9, NewLock(kThird));
  EXPECT_EQ(Wait(), std::nullopt);
}

// It may be the one that the thread waits for, left just now.
TEST_P(ManagedLockTest, OneThatNobodyHoldsCountsAmongThem) {
  Push(9, NewLock(kThird, false));
  EXPECT_EQ(Wait(), std::nullopt);
  Push(3, 0);
  const std::optional<LockWait> wait = Wait();
  ASSERT_TRUE(wait.has_value());
  EXPECT_FALSE(wait->held);
  EXPECT_EQ(wait->owner_tid, 0);
  EXPECT_EQ(wait->entered, 0);
}

TEST_P(ManagedLockTest, AnOwnerThatIsNotYetWrittenIsToBeReadAgain) {
  EXPECT_FALSE(Wait()->changing);
  objects_.fake.memory.Set<uint32_t>(objects_.Place(lock_, 1), 0);
  const std::optional<LockWait> wait = Wait();
  ASSERT_TRUE(wait.has_value());
  EXPECT_TRUE(wait->changing);
}

TEST_P(ManagedLockTest, AnOwnerThatBeganMeanwhileIsLookedUpAnew) {
  constexpr uint32_t kLate = 104, kLateManaged = 7;
  runtime_ = *objects_.fake.Attach();
  MonitorReader reader(*runtime_);
  EXPECT_TRUE(reader.Refresh().ok());
  objects_.Thread(kLate, kLateManaged);
  Push(3, NewLock(kLate));
  const std::optional<LockWait> wait = reader.WaitOf(kFirst, frames_);
  ASSERT_TRUE(wait.has_value());
  EXPECT_EQ(wait->owner_tid, kLate);
}

TEST_P(ManagedLockTest, OnesThatTheThreadHoldsItselfDoNotFit) {
  Push(9, NewLock(kFirst));
  Push(10, 0x7F0000001234);  // leads nowhere
  const std::optional<LockWait> wait = Wait();
  ASSERT_TRUE(wait.has_value());
  EXPECT_EQ(wait->lock, lock_);
}

TEST_P(ManagedLockTest, WordsBehindTheFramesOfTheLockAreNotLookedAt) {
  Push(3, 0);
  Push(40, lock_);
  EXPECT_EQ(Wait(), std::nullopt);
}

TEST_P(ManagedLockTest, WithoutSuchFramesNothingIsTold) {
  frames_ = {};
  EXPECT_EQ(Wait(), std::nullopt);
}

class ManagedMonitorTest : public ManagedLockTest {};
INSTANTIATE_TEST_SUITE_P(, ManagedMonitorTest, testing::Values(11), [](const auto& test) { return Text(test.param); });

TEST_P(ManagedMonitorTest, TheObjectIsTheOneWhoseMonitorThatLockIs) {
  frames_.monitor = true;
  const uint64_t stock = objects_.Object(objects_.stock), other = objects_.Object(objects_.stock);
  objects_.SetLock(objects_.SyncBlock(other), NewLock(kThird));
  objects_.SetLock(objects_.SyncBlock(stock), lock_);
  Push(40, other);
  Push(41, stock);
  const std::optional<LockWait> wait = Wait();
  ASSERT_TRUE(wait.has_value());
  EXPECT_EQ(wait->object, stock);
  EXPECT_EQ(wait->type, "Shop.Stock");
  EXPECT_EQ(wait->owner_tid, kSecond);
}

TEST_P(ManagedMonitorTest, WithoutItsObjectAMonitorHasNoType) {
  frames_.monitor = true;
  const std::optional<LockWait> wait = Wait();
  ASSERT_TRUE(wait.has_value());
  EXPECT_EQ(wait->type, "");
  EXPECT_EQ(wait->owner_tid, kSecond);
}

}  // namespace
}  // namespace clrsampler
