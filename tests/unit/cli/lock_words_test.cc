#include "cli/lock_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace clrsampler {
namespace {

ThreadStack Thread(uint32_t tid, const char* comm, std::optional<ThreadLock> lock = std::nullopt) {
  ThreadStack thread;
  thread.tid = tid;
  thread.comm = comm;
  thread.lock = std::move(lock);
  return thread;
}

ThreadLock Monitor(const char* type, uint32_t holder) {
  return {
      .known = true, .method = "Shop.Till.Pay", .type = type, .held = holder != 0, .holder_tid = holder, .entered = 1};
}

// 12 and 13 wait for each other, and 14 for one of them.
ThreadStacks Deadlocked() {
  ThreadStacks stacks;
  stacks.threads = {Thread(12, "worker", Monitor("Shop.Ledger", 13)), Thread(13, "other", Monitor("Shop.Stock", 12)),
                    Thread(14, "third", Monitor("Shop.Stock", 12)), Thread(15, "fourth")};
  stacks.deadlocks = {{12, 13}};
  return stacks;
}

TEST(LockWordsTest, AThreadThatWaitsSaysForWhatAndWhoHoldsIt) {
  ThreadStacks stacks = Deadlocked();
  EXPECT_EQ(LockSentence(stacks, stacks.threads[2]),
            "waits for the monitor of a Shop.Stock, which thread worker (12) holds");
  EXPECT_EQ(LockSentence(stacks, stacks.threads[3]), "");
  stacks.threads[2].lock->entered = 3;
  EXPECT_EQ(LockSentence(stacks, stacks.threads[2]),
            "waits for the monitor of a Shop.Stock, which thread worker (12) holds (entered 3 times)");
  stacks.threads[2].lock->type = "object";
  EXPECT_THAT(LockSentence(stacks, stacks.threads[2]), testing::HasSubstr("the monitor of an object, which"));
  stacks.threads[2].lock->type = "";
  stacks.threads[2].lock->monitor = false;
  stacks.threads[2].lock->entered = 1;
  EXPECT_EQ(LockSentence(stacks, stacks.threads[2]),
            "waits for a System.Threading.Lock, which thread worker (12) holds");
}

TEST(LockWordsTest, ATimeLimitIsSaid) {
  ThreadStacks stacks = Deadlocked();
  stacks.threads[2].lock->limited = true;
  EXPECT_EQ(LockSentence(stacks, stacks.threads[2]),
            "waits, with a time limit, for the monitor of a Shop.Stock, which thread worker (12) holds");
  nlohmann::ordered_json json;
  AddLockJson(stacks, stacks.threads[2], json);
  EXPECT_EQ(json["waits_for"]["limited"], true);
}

TEST(LockWordsTest, WhatIsNotKnownIsSaid) {
  ThreadStacks stacks = Deadlocked();
  ThreadLock& lock = *stacks.threads[2].lock;
  lock = Monitor("Shop.Stock", 0);
  EXPECT_EQ(LockSentence(stacks, stacks.threads[2]), "waits for the monitor of a Shop.Stock, which nobody holds now");
  lock.held = true;
  EXPECT_EQ(LockSentence(stacks, stacks.threads[2]),
            "waits for the monitor of a Shop.Stock, which a thread holds that the runtime does not list");
  lock = ThreadLock{};
  EXPECT_EQ(LockSentence(stacks, stacks.threads[2]), "waits for a monitor; which one, and who holds it, is not known");
}

TEST(LockWordsTest, ADeadlockIsOneSentenceAndALineForEachThread) {
  EXPECT_EQ(DeadlockText(Deadlocked()),
            "deadlock: the threads worker (12), other (13) wait for each other, and none of them will go on\n"
            "  worker (12) waits for the monitor of a Shop.Ledger, which thread other (13) holds, in Shop.Till.Pay\n"
            "  other (13) waits for the monitor of a Shop.Stock, which thread worker (12) holds, in Shop.Till.Pay\n");
  EXPECT_EQ(DeadlockText({}), "");
}

TEST(LockWordsTest, WhereNothingCouldBeReadNoThreadIsSaidToWaitForNothing) {
  ThreadStacks stacks;
  EXPECT_EQ(HeldLocksText(stacks, 5), "no thread waits for a monitor or a System.Threading.Lock\n");
  nlohmann::ordered_json json;
  AddHeldLocks(stacks, json);
  EXPECT_EQ(json.dump(), R"({"held_at_end":[]})");
  stacks.locks_trouble = "it has\x1bno list";
  EXPECT_THAT(HeldLocksText(stacks, 5), testing::MatchesRegex("the holders of locks are not known: it has.+no list\n"));
  EXPECT_THAT(HeldLocksText(stacks, 5), testing::Not(testing::HasSubstr("\x1b")));
  AddHeldLocks(stacks, json);
  EXPECT_EQ(json["held_at_end_trouble"], "it has\x1bno list");
  AddHeldLocks(absl::NotFoundError("it has ended"), json);
  EXPECT_EQ(json["held_at_end_trouble"], "it has ended");
}

TEST(LockWordsTest, WhatIsKnownStandsAboveWhatIsNot) {
  ThreadStacks stacks = Deadlocked();
  stacks.locks_trouble = "threads without a stack: 2";
  const std::string text = HeldLocksText(stacks, 5);
  EXPECT_THAT(text, testing::StartsWith("deadlock: "));
  EXPECT_THAT(text, testing::EndsWith("\nthe holders of other locks are not known: threads without a stack: 2\n"));
  nlohmann::ordered_json json;
  AddHeldLocks(stacks, json);
  EXPECT_EQ(json["held_at_end"].size(), 3u);
  EXPECT_EQ(json["held_at_end_trouble"], "threads without a stack: 2");
}

TEST(LockWordsTest, JsonHasTheHolderAndTheCircle) {
  const ThreadStacks stacks = Deadlocked();
  nlohmann::ordered_json first, third, fourth;
  AddLockJson(stacks, stacks.threads[0], first);
  AddLockJson(stacks, stacks.threads[2], third);
  AddLockJson(stacks, stacks.threads[3], fourth);
  EXPECT_EQ(first.dump(),
            R"({"waits_for":{"lock":"monitor","known":true,"type":"Shop.Ledger","held":true,"holder":13,"entered":1},)"
            R"("deadlock":[12,13]})");
  EXPECT_FALSE(third.contains("deadlock"));
  EXPECT_TRUE(fourth.is_null());
}

}  // namespace
}  // namespace clrsampler
