#include "unwind/raw_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "unit/unwind/raw_record.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;

TEST(RawStackTest, GivesBackWhatWasShipped) {
  RawRecord record;
  record.kernel = {0xffffffff81000010, 0xffffffff81000020};
  record.Frame(0x7000, 0x7040, 0x401000, {1, 2, 3}).Frame(0x7040, 0, 0x402000).Tail({9, 8});
  const auto stack = RawStack::Parse(record.Bytes());
  ASSERT_TRUE(stack.ok()) << stack.status();
  EXPECT_THAT(stack->kernel_addresses(), ElementsAre(0xffffffff81000010, 0xffffffff81000020));
  std::vector<RawStack::Frame> frames;
  const auto tail = stack->ForEachFrame([&](const RawStack::Frame& frame) { frames.push_back(frame); });
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].frame_address, 0x7000u);
  EXPECT_THAT(frames[0].gap, ElementsAre(1, 2, 3));
  EXPECT_EQ(frames[0].saved_fp, 0x7040u);
  EXPECT_EQ(frames[1].return_address, 0x402000u);
  EXPECT_THAT(tail, ElementsAre(9, 8));
}

TEST(RawStackTest, RefusesEveryTruncation) {
  RawRecord record;
  record.kernel = {1};
  record.Frame(0x7000, 0x7040, 0x401000, {1, 2, 3}).Tail({9});
  const auto bytes = record.Bytes();
  for (size_t length = 0; length < bytes.size(); length += 8) {
    EXPECT_FALSE(RawStack::Parse(bytes.first(length)).ok()) << length;
  }
}

TEST(RawStackTest, CountsThatLieNeverReadOutside) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20'000; ++i) {
    RawRecord record;
    record.Frame(0x7000, 0x7040, 0x401000, {1, 2}).Frame(0x7040, 0, 1).Tail({9});
    for (uint64_t& word : record.user) {
      if (random() % 3 == 0) word = random();
    }
    record.header.user_frames = static_cast<uint32_t>(random() % 6);
    const auto stack = RawStack::Parse(record.Bytes());
    if (!stack.ok()) continue;
    uint64_t sum = 0;  // under AddressSanitizer any stray read ends the test
    const auto tail = stack->ForEachFrame([&](const RawStack::Frame& frame) {
      for (const uint64_t word : frame.gap) sum += word;
      sum += frame.return_address;
    });
    for (const uint64_t word : tail) sum += word;
    EXPECT_LE(tail.size(), record.user.size());
    (void)sum;
  }
}

}  // namespace
}  // namespace clrsampler
