#include "unwind/raw_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
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

// 0x7FFFFFFFF000 stands for the trampoline of return probes.
TEST(RawStackTest, TrueReturnAddressesTakeThePlaceOfTheTrampolines) {
  constexpr uint64_t kTrampoline = 0x7FFFFFFFF000;
  RawRecord record;
  record.header.sp = 0x6FE8;
  record.kernel = {0xffffffff81000010};
  record.Frame(0x7000, 0x7040, kTrampoline, {1, kTrampoline, kTrampoline}).Frame(0x7040, 0, 0x402000);
  record.Tail({9, kTrampoline});
  record.snapshots.emplace_back();
  // In a gap, in a frame and in the tail; where another word lies, and what is not aligned, outside, or far away.
  record.returns = {{0x6FF0, 0xA1}, {0x7008, 0xA2}, {0x7058, 0xA3}, {0x7001, 0xBAD}};
  const auto bytes = record.Bytes();
  std::vector<uint64_t> words(bytes.size() / 8);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  const auto is_trampoline = [](uint64_t word) { return word >> 12 == kTrampoline >> 12; };
  RestoreReturnAddresses(words, false, is_trampoline);
  const auto stack = RawStack::Parse(std::as_bytes(std::span<const uint64_t>(words)));
  ASSERT_TRUE(stack.ok()) << stack.status();
  EXPECT_EQ(stack->replaced_returns().size(), 4u);
  std::vector<RawStack::Frame> frames;
  const auto tail = stack->ForEachFrame([&](const RawStack::Frame& frame) { frames.push_back(frame); });
  EXPECT_THAT(frames[0].gap, ElementsAre(1, 0xA1, kTrampoline)) << "what is left of an older call stays";
  EXPECT_EQ(frames[0].return_address, 0xA2u);
  EXPECT_EQ(frames[1].return_address, 0x402000u);
  EXPECT_THAT(tail, ElementsAre(9, 0xA3));
  EXPECT_THAT(stack->kernel_addresses(), ElementsAre(0xffffffff81000010));

  // Where the call has returned to the trampoline, the leaf is where it should have returned to.
  RawRecord returned;
  returned.header.ip = kTrampoline;
  returned.header.sp = 0x7000;
  returned.returns = {{0x6FF8, 0xA1}, {0x7108, 0xA2}};
  const auto leaf = returned.Bytes();
  std::vector<uint64_t> leaf_words(leaf.size() / 8);
  std::memcpy(leaf_words.data(), leaf.data(), leaf.size());
  RestoreReturnAddresses(leaf_words, true, is_trampoline);
  EXPECT_EQ(RawStack::Parse(std::as_bytes(std::span<const uint64_t>(leaf_words)))->sample().ip, 0xA1u);

  // A word that the trampoline has pushed is not the caller's.
  RawRecord pushed;
  pushed.header.ip = kTrampoline + 5;
  pushed.header.sp = 0x7000;
  pushed.Frame(0x7030, 0x7040, 0x402000, {11, 12, 13, 21, 22, 23}).Tail({9});
  pushed.returns = {{0x7010, 0xA1}};
  const auto busy = pushed.Bytes();
  for (const bool known : {true, false}) {
    std::vector<uint64_t> busy_words(busy.size() / 8);
    std::memcpy(busy_words.data(), busy.data(), busy.size());
    RestoreReturnAddresses(busy_words, known, is_trampoline);
    const auto mended = RawStack::Parse(std::as_bytes(std::span<const uint64_t>(busy_words)));
    ASSERT_TRUE(mended.ok()) << mended.status();
    EXPECT_EQ(mended->sample().ip, known ? 0xA1u : kTrampoline + 5);
    EXPECT_EQ(mended->sample().sp, known ? 0x7018u : 0x7000u);
    mended->ForEachFrame([&](const RawStack::Frame& frame) {
      EXPECT_EQ(frame.frame_address, 0x7030u);
      EXPECT_EQ(frame.gap_address, mended->sample().sp);
      EXPECT_EQ(frame.gap.size(), known ? 3u : 6u);
      EXPECT_EQ(frame.gap.back(), 23u);
      EXPECT_EQ(frame.return_address, 0x402000u);
    });
    EXPECT_EQ(mended->sample().header.size, busy_words.size() * 8);
  }

  // Nothing is changed in a record that is cut.
  std::vector<uint64_t> cut(words.begin(), words.end() - 1);
  const std::vector<uint64_t> before = cut;
  RestoreReturnAddresses(cut, true, is_trampoline);
  EXPECT_EQ(cut, before);
}

TEST(RawStackTest, WordsOfLaterCallsStayWhereLongjmpLeftACall) {
  RawRecord record;
  record.header.ip = 0x400000;
  record.header.sp = 0x7000;  // as if the call that was left had just returned
  record.Frame(0x7030, 0x7040, 0x402000, {11, 12}).Tail({9});
  record.returns = {{0x6FF8, 0xA1}, {0x7038, 0xA2}};
  const auto bytes = record.Bytes();
  std::vector<uint64_t> words(bytes.size() / 8);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  const std::vector<uint64_t> before = words;
  RestoreReturnAddresses(words, false, [](uint64_t) { return false; });
  EXPECT_EQ(words, before);
  RestoreReturnAddresses(words, false, [](uint64_t) { return true; });
  EXPECT_NE(words, before) << "where the trampoline is not known, the kernel's word is taken";
}

TEST(RawStackTest, OnArm64TheFrameRecordOfTheCallHasTheTrampolinesAddress) {
  constexpr uint64_t kTrampoline = 0x7FFFFFFFF000, kSigned = kTrampoline | uint64_t{0x2a} << 48;
  RawRecord record;
  record.header.sp = 0x6FE8;
  record.header.ip = 0x401000;
  record.header.lr = kTrampoline;
  // A probed function, one that is not, another probed one, and one whose call is not told of.
  record.Frame(0x7000, 0x7040, kSigned, {1, 2}).Frame(0x7040, 0x7080, 0x402000, {3}).Frame(0x7080, 0x70C0, kTrampoline);
  record.Frame(0x70C0, 0, kTrampoline);
  record.returns = {{0x7030, 0xA1}, {0x70C0, 0xA2}};
  const auto restored = [&] {
    const auto bytes = record.Bytes();
    std::vector<uint64_t> words(bytes.size() / 8);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    RestoreLinkRegisters(words, [&](uint64_t address) { return address == kTrampoline; });
    return words;
  };
  const std::vector<uint64_t> words = restored();
  const auto stack = RawStack::Parse(std::as_bytes(std::span<const uint64_t>(words)));
  ASSERT_TRUE(stack.ok()) << stack.status();
  std::vector<uint64_t> returns;
  stack->ForEachFrame([&](const RawStack::Frame& frame) { returns.push_back(frame.return_address); });
  EXPECT_THAT(returns, ElementsAre(0xA1, 0x402000, 0xA2, kTrampoline));
  EXPECT_EQ(stack->sample().lr, 0xA1u);
  EXPECT_EQ(stack->sample().ip, 0x401000u);
  record.header.ip = kTrampoline;
  const std::vector<uint64_t> at_trampoline = restored();
  EXPECT_EQ(RawStack::Parse(std::as_bytes(std::span<const uint64_t>(at_trampoline)))->sample().ip, 0xA1u);
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

TEST(RawStackTest, SnapshotsFollowTheWords) {
  for (const bool with_stack : {true, false}) {
    RawRecord record;
    if (with_stack) {
      record.kernel = {1, 2, 3};
      record.Frame(0x7000, 0x7040, 0x401000, {1, 2}).Tail({9});
    }
    for (uint64_t i = 0; i < WIRE_MAX_SNAPSHOTS; ++i) {
      wire_code_snapshot snapshot{};
      snapshot.address = 0x1000 + i;
      snapshot.start = 0x1000;
      snapshot.header = 0x2000 + i;
      std::memset(snapshot.identity, static_cast<int>(i), sizeof snapshot.identity);
      std::strcpy(snapshot.name, "Emitted");
      record.snapshots.push_back(snapshot);
    }
    const auto stack = RawStack::Parse(record.Bytes());
    ASSERT_TRUE(stack.ok()) << stack.status();
    ASSERT_EQ(stack->snapshots().size(), size_t{WIRE_MAX_SNAPSHOTS});
    for (size_t i = 0; i < record.snapshots.size(); ++i) {
      EXPECT_EQ(std::memcmp(&stack->snapshots()[i], &record.snapshots[i], sizeof(wire_code_snapshot)), 0) << i;
    }
  }
}

TEST(RawStackTest, SnapshotsThatAreCutOffOrTooManyAreRefused) {
  RawRecord record;
  record.Frame(0x7000, 0x7040, 0x401000, {1, 2}).Tail({9});
  EXPECT_TRUE(RawStack::Parse(record.Bytes())->snapshots().empty());
  record.snapshots.resize(2);
  const auto whole = record.Bytes();
  for (size_t length = 0; length < whole.size(); length += 8) {
    EXPECT_FALSE(RawStack::Parse(whole.first(length)).ok()) << length;
  }
  // More announced than there are.
  std::vector<uint64_t> copy(whole.size() / 8);
  std::memcpy(copy.data(), whole.data(), whole.size());
  for (const uint16_t count : {uint16_t{0}, uint16_t{1}, uint16_t{3}, uint16_t{0xFFFF}}) {
    std::memcpy(reinterpret_cast<char*>(copy.data()) + offsetof(wire_cpu_sample, snapshots), &count, sizeof count);
    const auto stack = RawStack::Parse(std::as_bytes(std::span<const uint64_t>(copy)));
    if (count > 2) {
      EXPECT_FALSE(stack.ok()) << count;
    }
  }
}

TEST(RawStackTest, AsyncObjectsAreTheEndOfTheRecord) {
  RawRecord record;
  record.Frame(0x7000, 0x7040, 0x401000, {1, 2}).Tail({9});
  record.snapshots.resize(1);
  record.returns = {{0x7000, 0xA1}};
  EXPECT_TRUE(RawStack::Parse(record.Bytes())->async_objects().empty());
  record.async_objects.resize(WIRE_MAX_ASYNC_OBJECTS);
  for (uint64_t i = 0; i < WIRE_MAX_ASYNC_OBJECTS; ++i) record.async_objects[i] = {0x1000 + 8 * i, {i, 2, 3}};
  record.header.flags = 0;
  const auto whole = record.Bytes();
  const auto stack = RawStack::Parse(whole);
  ASSERT_TRUE(stack.ok()) << stack.status();
  ASSERT_EQ(stack->async_objects().size(), size_t{WIRE_MAX_ASYNC_OBJECTS});
  EXPECT_EQ(stack->async_objects().back().address, 0x1000u + 8 * (WIRE_MAX_ASYNC_OBJECTS - 1));
  EXPECT_EQ(stack->async_objects().back().words[0], uint64_t{WIRE_MAX_ASYNC_OBJECTS - 1});
  EXPECT_EQ(stack->replaced_returns().size(), 1u);
  for (size_t length = 0; length < whole.size(); length += 8) {
    EXPECT_FALSE(RawStack::Parse(whole.first(length)).ok()) << length;
  }
}

TEST(RawStackTest, TheIdsOfATraceComeLast) {
  RawRecord record;
  record.Frame(0x7000, 0x7040, 0x401000, {1, 2}).Tail({9});
  EXPECT_EQ(RawStack::Parse(record.Bytes())->trace(), nullptr);
  record.async_objects.resize(2);
  record.traces.push_back({{1, 2, 3}, {4, 5}});
  const auto whole = record.Bytes();
  const auto stack = RawStack::Parse(whole);
  ASSERT_TRUE(stack.ok()) << stack.status();
  ASSERT_NE(stack->trace(), nullptr);
  EXPECT_EQ(stack->trace()->trace_id[2], 3);
  EXPECT_EQ(stack->trace()->span_id[1], 5);
  EXPECT_EQ(stack->async_objects().size(), 2u);
  EXPECT_FALSE(RawStack::Parse(whole.first(whole.size() - 8)).ok());
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
