// On a made-up runtime, and a made-up /proc that says where its threads stand.
#include "pipeline/lock_holders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "unit/clr/memory/fake_objects.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;

constexpr uint32_t kPid = 4711;
// In our pid namespace; in that of the process they are 4700 less.
constexpr uint32_t kFirst = 4712, kSecond = 4713, kThird = 4714;
constexpr uint64_t kStack = 0x7F00'0000'1000;

class LockHoldersTest : public testing::Test {
 protected:
  LockHoldersTest() : objects_(9) {
    for (const uint32_t tid : {kFirst, kSecond, kThird}) threads_[tid] = objects_.Thread(Inner(tid), tid - kPid);
    for (uint64_t& block : blocks_) block = objects_.SyncBlock(objects_.Object(objects_.stock));
  }
  ~LockHoldersTest() override { std::filesystem::remove_all(root_); }

  static uint32_t Inner(uint32_t tid) { return tid - 4700; }
  void Hold(size_t lock, uint32_t tid) { objects_.Hold(blocks_[lock], Inner(tid), 1); }
  void Want(uint32_t tid, size_t lock) { objects_.Block(threads_[tid], blocks_[lock]); }
  void Stand(uint32_t tid, const std::string& call) {
    const std::filesystem::path folder = absl::StrCat(root_, "/", kPid, "/task/", tid);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "syscall") << call;
    std::ofstream(folder / "status") << absl::StrFormat(
        "Name:\tx\nTgid:\t%d\nPid:\t%d\nUid:\t0\t0\t0\t0\nNSpid:\t%d\t%d\nvoluntary_ctxt_switches:\t9\n", kPid, tid,
        tid, Inner(tid));
  }
  static std::string BlockedAt(uint64_t stack_pointer) { return absl::StrFormat("202 0x1 0x%x 0x2\n", stack_pointer); }
  LockHolders Read() {
    runtime_ = *objects_.fake.Attach();
    LockHolders holders(root_, kPid, *runtime_);
    for (const auto& [tid, thread] : threads_) holders.Add(tid, kStack + tid, {});
    holders.Read();
    return holders;
  }

  const std::string root_ =
      absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name());
  FakeObjects objects_;
  std::map<uint32_t, uint64_t> threads_;
  std::array<uint64_t, 2> blocks_{};
  std::unique_ptr<RuntimeMemory> runtime_;
};

TEST_F(LockHoldersTest, HoldersHaveIdsOfOurNamespaceAndCirclesAreFound) {
  Hold(0, kFirst);
  Hold(1, kSecond);
  Want(kFirst, 1);
  Want(kSecond, 0);
  Want(kThird, 0);
  for (const auto& [tid, thread] : threads_) Stand(tid, BlockedAt(kStack + tid));
  const LockHolders holders = Read();
  ASSERT_THAT(holders.waits(), ElementsAre(Key(kFirst), Key(kSecond), Key(kThird)));
  EXPECT_EQ(holders.waits().at(kFirst).holder_tid, kSecond);
  EXPECT_EQ(holders.waits().at(kSecond).holder_tid, kFirst);
  EXPECT_EQ(holders.waits().at(kThird).holder_tid, kFirst);
  EXPECT_EQ(holders.Trouble(), "");
  EXPECT_THAT(holders.deadlocks(), ElementsAre(ElementsAre(kFirst, kSecond)));
}

TEST_F(LockHoldersTest, AHolderWhoseStackCouldNotBeTakenIsNamed) {
  Hold(0, kFirst);
  Want(kSecond, 0);
  for (const uint32_t tid : {kFirst, kSecond}) Stand(tid, BlockedAt(kStack + tid));
  runtime_ = *objects_.fake.Attach();
  LockHolders holders(root_, kPid, *runtime_);
  EXPECT_EQ(holders.AddHolder(kFirst), Inner(kFirst));
  holders.Add(kSecond, kStack + kSecond, {});
  EXPECT_EQ(holders.AddHolder(kThird), std::nullopt) << "it is gone";
  holders.Read();
  ASSERT_THAT(holders.waits(), ElementsAre(Key(kSecond)));
  EXPECT_EQ(holders.waits().at(kSecond).holder_tid, kFirst);
}

TEST_F(LockHoldersTest, AThreadThatGivesUpAfterSomeTimeEndsACircle) {
  Hold(0, kFirst);
  Hold(1, kSecond);
  Want(kFirst, 1);
  objects_.Block(threads_[kSecond], blocks_[0], 0, 10'000);
  for (const auto& [tid, thread] : threads_) Stand(tid, BlockedAt(kStack + tid));
  const LockHolders holders = Read();
  ASSERT_THAT(holders.waits(), ElementsAre(Key(kFirst), Key(kSecond)));
  EXPECT_FALSE(holders.waits().at(kFirst).wait.limited);
  EXPECT_TRUE(holders.waits().at(kSecond).wait.limited);
  EXPECT_EQ(holders.waits().at(kSecond).holder_tid, kFirst);
  EXPECT_THAT(holders.deadlocks(), IsEmpty());
}

TEST_F(LockHoldersTest, WhatIsReadOfAThreadThatRunsDoesNotCount) {
  Hold(0, kFirst);
  Hold(1, kSecond);
  Want(kFirst, 1);
  Want(kSecond, 0);
  Stand(kFirst, BlockedAt(kStack + kFirst));
  Stand(kSecond, "running\n");
  Stand(kThird, BlockedAt(kStack + kThird));
  const LockHolders holders = Read();
  EXPECT_THAT(holders.waits(), ElementsAre(Key(kFirst)));
  EXPECT_THAT(holders.deadlocks(), IsEmpty());
  EXPECT_EQ(holders.Trouble(), "threads that ran, or whose lock changed hands, each time that they were looked at: 1");
}

TEST_F(LockHoldersTest, AHolderThatIsBeingWrittenIsNotTold) {
  Hold(0, kSecond);
  Want(kFirst, 0);
  objects_.fake.memory.Set<uint64_t>(blocks_[0] + objects_.fake.layout.sync_block.owner_os_id, 0);
  Stand(kFirst, BlockedAt(kStack + kFirst));
  const LockHolders holders = Read();
  EXPECT_THAT(holders.waits(), IsEmpty());
  EXPECT_THAT(holders.Trouble(), testing::HasSubstr("whose lock changed hands"));
}

TEST_F(LockHoldersTest, ALockThatNobodyHoldsAtEachLookIsHeldByNobody) {
  Want(kFirst, 0);
  Stand(kFirst, BlockedAt(kStack + kFirst));
  const LockHolders holders = Read();
  ASSERT_THAT(holders.waits(), ElementsAre(Key(kFirst)));
  EXPECT_FALSE(holders.waits().at(kFirst).wait.held);
  EXPECT_EQ(holders.Trouble(), "");
}

TEST_F(LockHoldersTest, AListOfThreadsThatCantBeReadIsTrouble) {
  for (const auto& [tid, thread] : threads_) {
    objects_.fake.memory.Set<uint64_t>(thread + objects_.fake.layout.thread_list.os_id, 0);
  }
  const LockHolders holders = Read();
  EXPECT_THAT(holders.waits(), IsEmpty());
  EXPECT_THAT(holders.Trouble(), testing::HasSubstr("list of its threads"));
}

TEST_F(LockHoldersTest, NorDoesThatOfOneThatStandsElsewhereThanItsStackWasTaken) {
  Hold(0, kSecond);
  Want(kFirst, 0);
  Stand(kFirst, BlockedAt(kStack + kFirst + 8));
  EXPECT_THAT(Read().waits(), IsEmpty());
}

}  // namespace
}  // namespace clrsampler
