#include "pipeline/lock_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

constexpr uint64_t kFrameStack = 0x7000;

// A thread that enters a monitor on 11, leaf first.
std::vector<NamedFrame> EntersAMonitor() {
  return {{0x10, "futex_wait", false},
          {0x11, "System.Threading.WaitHandle.WaitOneNoCheck"},
          {0x12, "System.Threading.Lock.TryEnterSlow"},
          {0x13, "System.Threading.Monitor.Enter"},
          {0x14, "Shop.Cart.Add"},
          {0x15, "Shop.Main"}};
}

// The return address into frame i stands at word 2 * i.
std::vector<uint64_t> Words() { return {0, 0, 0x11, 0, 0x12, 0, 0x13, 0, 0x14, 0, 0x15, 0}; }

TEST(LockFramesTest, RangesEndWithTheMethodsOfTheLockAndWithTheOneThatEnters) {
  const WaitFrames found = FramesOfLockWait(EntersAMonitor(), kFrameStack, Words());
  EXPECT_EQ(found.inner.begin, kFrameStack);
  EXPECT_EQ(found.inner.end, kFrameStack + 8 * 8);
  EXPECT_EQ(found.outer.begin, kFrameStack);
  EXPECT_EQ(found.outer.end, kFrameStack + 8 * 10);
  EXPECT_TRUE(found.monitor);
}

TEST(LockFramesTest, AnOldReturnAddressMakesNoRangeLonger) {
  std::vector<uint64_t> words = Words();
  words[1] = 0x14;  // below the first frame's: passed over
  words.push_back(0x14);
  EXPECT_EQ(FramesOfLockWait(EntersAMonitor(), kFrameStack, words).inner.end, kFrameStack + 8 * 8);
}

TEST(LockFramesTest, WithoutItsReturnAddressesThereIsNoRange) {
  std::vector<uint64_t> words = Words();
  words[6] = 0;
  const WaitFrames found = FramesOfLockWait(EntersAMonitor(), kFrameStack, words);
  EXPECT_EQ(found.inner.end, found.inner.begin);
}

TEST(LockFramesTest, OtherWaitsHaveNone) {
  const std::vector<NamedFrame> frames = {
      {0x10, "futex_wait", false}, {0x11, "System.Threading.WaitHandle.WaitOneNoCheck"}, {0x14, "Shop.Cart.Add"}};
  EXPECT_FALSE(WaitsInLock(frames));
  EXPECT_EQ(FramesOfLockWait(frames, kFrameStack, Words()).inner.end, 0);
}

TEST(LockFramesTest, ALockOfItsOwnIsNoMonitor) {
  std::vector<NamedFrame> frames = EntersAMonitor();
  frames[3].name = "System.Threading.Lock.EnterScope";
  EXPECT_TRUE(WaitsInLock(frames));
  EXPECT_FALSE(EntersMonitor(frames));
}

TEST(LockFramesTest, ThoseThatTryGiveUpAfterSomeTime) {
  EXPECT_FALSE(FramesOfLockWait(EntersAMonitor(), kFrameStack, Words()).limited);
  std::vector<NamedFrame> frames = EntersAMonitor();
  for (const char* name : {"System.Threading.Monitor.TryEnter", "System.Threading.Lock.TryEnter_Outlined"}) {
    frames[3].name = name;
    EXPECT_TRUE(FramesOfLockWait(frames, kFrameStack, Words()).limited) << name;
  }
  for (const char* name :
       {"System.Threading.Lock.EnterScope", "void System.Threading.Lock.Enter()", "System.Threading.Condition.Wait"}) {
    frames[3].name = name;
    EXPECT_FALSE(FramesOfLockWait(frames, kFrameStack, Words()).limited) << name;
  }
  frames.erase(frames.begin() + 3);  // it is not seen which method enters
  EXPECT_TRUE(FramesOfLockWait(frames, kFrameStack, Words()).limited);
}

TEST(LockFramesTest, WhoEntersAgainBehindAPulseEntersAMonitor) {
  std::vector<NamedFrame> frames = EntersAMonitor();
  frames[3].name = "System.Threading.Condition.Wait";
  frames.insert(frames.begin() + 4, {0x16, "System.Threading.Monitor.Wait"});
  EXPECT_TRUE(EntersMonitor(frames));
  EXPECT_EQ(EnteringMethod(frames), "Shop.Cart.Add");
}

TEST(LockFramesTest, TheMethodThatEntersStandsOutsideOfTheLock) {
  EXPECT_EQ(EnteringMethod(EntersAMonitor()), "Shop.Cart.Add");
  const std::vector<NamedFrame> before_10 = {
      {0x10, "futex_wait", false}, {0x11, "libcoreclr.so", false}, {0x12, "Shop.Buy"}};
  EXPECT_EQ(EnteringMethod(before_10), "Shop.Buy");
  EXPECT_EQ(EnteringMethod({}), "");
}

}  // namespace
}  // namespace clrsampler
