#include "unwind/frame_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/unwind/raw_record.h"

namespace clrsampler {
namespace {

UserStack Walk(RawRecord& record) {
  UserStack stack;
  WalkFrameChain(RawStack::Parse(record.Bytes()).value(), stack);
  return stack;
}

TEST(FrameChainTest, LeafThenReturnAddressesLookedUpOneByteBefore) {
  RawRecord record;
  record.header.ip = 0x400100;
  record.header.stop = WIRE_STOP_END;
  record.Frame(0x7000, 0x7040, 0x401000).Frame(0x7040, 0, 0x402000);
  const UserStack stack = Walk(record);
  ASSERT_EQ(stack.frames.size(), 3u);
  EXPECT_EQ(stack.frames[0].lookup_address, 0x400100u);
  EXPECT_EQ(stack.frames[1].address, 0x401000u);
  EXPECT_EQ(stack.frames[1].lookup_address, 0x400fffu);
  EXPECT_EQ(stack.end, StackEnd::kComplete);
}

TEST(FrameChainTest, PointerAuthenticationBitsAreNotPartOfTheAddress) {
  RawRecord record;
  record.header.ip = 0x400100;
  record.Frame(0x7000, 0, 0x0012'0000'0040'1000);
  EXPECT_EQ(Walk(record).frames[1].address, 0x401000u);
}

TEST(FrameChainTest, TheEndSaysWhatIsMissing) {
  const std::pair<int, StackEnd> cases[] = {
      {WIRE_STOP_NONE, StackEnd::kComplete},        {WIRE_STOP_END, StackEnd::kComplete},
      {WIRE_STOP_BAD_FP, StackEnd::kBroken},        {WIRE_STOP_FAULT, StackEnd::kBroken},
      {WIRE_STOP_MAX_FRAMES, StackEnd::kTruncated}, {WIRE_STOP_MAX_WORDS, StackEnd::kTruncated}};
  for (const auto& [stop, end] : cases) {
    RawRecord record;
    record.header.ip = 1;
    record.header.stop = static_cast<uint16_t>(stop);
    EXPECT_EQ(Walk(record).end, end) << stop;
  }
}

TEST(FrameChainTest, AKernelThreadHasNoUserFrames) {
  RawRecord record;
  record.header.flags = WIRE_SAMPLE_KTHREAD;
  EXPECT_TRUE(Walk(record).frames.empty());
}

}  // namespace
}  // namespace clrsampler
