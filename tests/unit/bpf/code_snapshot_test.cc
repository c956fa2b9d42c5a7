// The sampler's walk of the nibble map against user space's, on the same memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "formats/runtime/nibble_map.h"
#include "unit/bpf/code_snapshot_host.h"
#include "unit/clr/memory/fake_memory.h"
#include "unit/formats/runtime/nibble_heap.h"

namespace clrsampler {
namespace {

constexpr uint64_t kHeap = 0x7F3300001000, kMapBase = 0x7F3300000000, kMap = 0x7F4400000000;
constexpr uint64_t kHeaders = 0x7F5500000000, kMethodDesc = 0x7F6600000000, kName = 0x7F7700000000;
constexpr uint32_t kFirst = 0x500;                  // where methods begin, from what their functions count from
constexpr uint64_t kReach = 32 * kNibbleWordBytes;  // how far back the sampler looks in version 1

class CodeSnapshotTest : public testing::TestWithParam<NibbleMapVersion> {
 protected:
  void SetUp() override {
    host_bpf = {};
    host_bpf.memory = &memory_;
    host_bpf.read = [](void* memory, __u64 address, void* into, size_t bytes) {
      return static_cast<FakeMemory*>(memory)->Read(address, {static_cast<std::byte*>(into), bytes});
    };
    host_bpf.has_code = true;
    host_bpf.code.nibble_version = static_cast<uint16_t>(GetParam());
    host_bpf.code.function_bytes = WIRE_FUNCTION_WITH_END;
    host_bpf.code.method_flags = 6;
    host_bpf.code.dynamic_name = 32;
    memory_.Map(kMethodDesc, 64);
    memory_.Set<uint16_t>(kMethodDesc + 6, 7);
    memory_.Set<uint64_t>(kMethodDesc + 32, kName);
    memory_.SetText(kName, "Emitted7");
  }

  static void SetHeap(uint64_t bytes) {
    host_bpf.heap = {kHeap, kMapBase + bytes, kMapBase, kMap};
    host_bpf.code.begin = kHeap;
    host_bpf.code.end = kMapBase + bytes;
  }

  // The map in memory, and a header before each method that carries its number.
  void Place(const NibbleHeap& heap, uint64_t bytes) {
    SetHeap(bytes);
    memory_.SetBytes(kMap, std::as_bytes(std::span(heap.words)));
    memory_.Map(kMapBase - 8, bytes + 8);
    memory_.Map(kHeaders, 64 * (heap.methods.size() + 1));
    for (size_t i = 0; i < heap.methods.size(); ++i) {
      memory_.Set<uint64_t>(kMapBase + heap.methods[i].start - 8, kHeaders + 64 * i);
      memory_.Set<uint64_t>(kHeaders + 64 * i, i);
      memory_.Set<uint64_t>(kHeaders + 64 * i + 24, kMethodDesc);
      SetFunctions(kHeaders + 64 * i, {1, kFirst, kFirst + static_cast<uint32_t>(heap.methods[i].bytes), 0});
    }
  }

  // {how many, and these as the runtime writes them}
  void SetFunctions(uint64_t header, const std::vector<uint32_t>& words) {
    memory_.SetBytes(header + 32, std::as_bytes(std::span(words)));
  }

  std::optional<wire_code_snapshot> Snapshot(uint64_t address) {
    host_reset();
    host_snapshot(address);
    if (host_snapshot_count() == 0) return std::nullopt;
    return host_snapshot_at(0);
  }

  FakeMemory memory_;
};

INSTANTIATE_TEST_SUITE_P(Versions, CodeSnapshotTest, testing::Values(NibbleMapVersion::k1, NibbleMapVersion::k2),
                         [](const auto& one) { return one.param == NibbleMapVersion::k1 ? "V1" : "V2"; });

TEST_P(CodeSnapshotTest, FindsTheSameStartAsUserSpaceForEveryByteOfRandomHeaps) {
  std::mt19937_64 random(21);
  for (int round = 0; round < 6; ++round) {
    constexpr uint64_t kBytes = 40'000;
    memory_ = FakeMemory();
    SetUp();
    NibbleHeap heap = NibbleHeap::Random(GetParam(), random, kBytes);
    Place(heap, kBytes);
    const auto word = [&](uint64_t index) { return std::optional<uint32_t>(heap.words[index]); };
    int found = 0;
    for (uint64_t offset = kHeap - kMapBase; offset < kBytes; ++offset) {
      const std::optional<uint64_t> start = FindMethodStart(GetParam(), offset, word);
      const std::optional<wire_code_snapshot> snapshot = Snapshot(kMapBase + offset);
      if (!start || (GetParam() == NibbleMapVersion::k1 && offset / 256 - *start / 256 > kReach / 256) ||
          offset - *start >= heap.At(offset)->bytes) {
        ASSERT_FALSE(snapshot.has_value()) << offset;
        continue;
      }
      ASSERT_TRUE(snapshot.has_value()) << offset;
      ASSERT_EQ(snapshot->start, kMapBase + *start) << offset;
      ASSERT_EQ(snapshot->address, kMapBase + offset);
      ++found;
    }
    EXPECT_GT(found, 10'000);
  }
}

// Maps that no runtime writes: both sides find the same or the sampler finds nothing.
TEST_P(CodeSnapshotTest, OnHostileMapsItNeverFindsAnotherStart) {
  std::mt19937_64 random(22);
  constexpr uint64_t kBytes = 16'384;
  memory_.Map(kMapBase - 8, kBytes + 8);
  memory_.Map(kHeaders, 64);
  SetFunctions(kHeaders, {1, 0, UINT32_MAX, 0});
  SetHeap(kBytes);
  std::vector<uint32_t> words(kBytes / 256);
  memory_.SetBytes(kMap, std::as_bytes(std::span(words)));
  for (int round = 0; round < 3000; ++round) {
    for (uint32_t& word : words) {
      word = random() % 3 != 0 ? 0 : static_cast<uint32_t>(random());
      if (random() % 2 == 0) word &= static_cast<uint32_t>(random()) & 0x77777777;
    }
    memory_.SetBytes(kMap, std::as_bytes(std::span(words)));
    for (int i = 0; i < 20; ++i) {
      const uint64_t offset = kHeap - kMapBase + random() % (kBytes - (kHeap - kMapBase));
      const auto start =
          FindMethodStart(GetParam(), offset, [&](uint64_t index) -> std::optional<uint32_t> { return words[index]; });
      // Any header: the start alone is compared.
      if (start && *start < kBytes) memory_.Set<uint64_t>(kMapBase + *start - 8, kHeaders);
      host_bpf.reads = 0;
      const auto snapshot = Snapshot(kMapBase + offset);
      EXPECT_LE(host_bpf.reads, 33u + 5u);
      if (snapshot) {
        ASSERT_TRUE(start.has_value()) << "round " << round << ", offset " << offset;
        ASSERT_EQ(snapshot->start, kMapBase + *start) << "round " << round << ", offset " << offset;
      }
      if (start && *start < kBytes) memory_.Set<uint64_t>(kMapBase + *start - 8, 0);
    }
  }
}

TEST_P(CodeSnapshotTest, CopiesWhatTellsTheMethodApart) {
  NibbleHeap heap(GetParam());
  heap.Add(0x2000, 300);
  Place(heap, 0x4000);
  const auto snapshot = Snapshot(kMapBase + 0x2000 + 299);
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_EQ(snapshot->header, kHeaders);
  std::array<std::byte, 48> identity;
  ASSERT_TRUE(memory_.Read(kHeaders, identity));
  EXPECT_EQ(std::memcmp(snapshot->identity, identity.data(), identity.size()), 0);
  EXPECT_STREQ(snapshot->name, "Emitted7");
}

TEST_P(CodeSnapshotTest, CopiesWhatUnwindingNeeds) {
  NibbleHeap heap(GetParam());
  heap.Add(0x2000, 300);
  Place(heap, 0x4000);
  SetFunctions(kHeaders, {1, kFirst, kFirst + 300, kFirst + 0x400});
  std::array<uint8_t, 32> unwind, code;
  unwind.fill(0x5A);
  code.fill(0xC3);
  memory_.SetBytes(kMapBase + 0x2000 + 0x400, std::as_bytes(std::span(unwind)));
  memory_.SetBytes(kMapBase + 0x2010, std::as_bytes(std::span(code)));
  const auto snapshot = Snapshot(kMapBase + 0x2010);
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_EQ(std::memcmp(snapshot->unwind, unwind.data(), unwind.size()), 0);
  EXPECT_EQ(std::memcmp(snapshot->code, code.data(), code.size()), 0);
  host_bpf.code.function_bytes = WIRE_FUNCTION_WITHOUT_END;
  SetFunctions(kHeaders, {1, kFirst, kFirst + 0x400});
  const auto elsewhere = Snapshot(kMapBase + 0x2010);
  ASSERT_TRUE(elsewhere.has_value());
  EXPECT_EQ(std::count(std::begin(elsewhere->unwind), std::end(elsewhere->unwind), 0), 32) << "not asked for";
  host_bpf.code.function_bytes = WIRE_FUNCTION_WITH_END;
  SetFunctions(kHeaders, {1, kFirst, kFirst + 0x2000, kFirst + 0x400});
  // Without the instructions the unwind data alone would be read as that of a leaf outside its epilogue.
  const auto at_the_end = Snapshot(kMapBase + 0x4000 - 31);
  if (at_the_end) {
    EXPECT_EQ(std::count(std::begin(at_the_end->unwind), std::end(at_the_end->unwind), 0), 32);
  }
  memory_.Set<uint32_t>(kHeaders + 44, 0x7000'0000);  // unwind data that is not there
  const auto unreadable = Snapshot(kMapBase + 0x2010);
  ASSERT_TRUE(unreadable.has_value());
  EXPECT_EQ(std::count(std::begin(unreadable->unwind), std::end(unreadable->unwind), 0), 32);
}

// A word that is left over on a stack points behind a method: to free memory, where the next one may lie in a moment.
TEST_P(CodeSnapshotTest, WhatLiesBehindAMethodIsNotItsCode) {
  NibbleHeap heap(GetParam());
  heap.Add(0x2000, 100);
  Place(heap, 0x4000);
  EXPECT_TRUE(Snapshot(kMapBase + 0x2000).has_value());
  EXPECT_TRUE(Snapshot(kMapBase + 0x2000 + 99).has_value());
  EXPECT_FALSE(Snapshot(kMapBase + 0x2000 + 100).has_value());
  // Two funclets follow the body.
  memory_.Map(kHeaders + 64, 64);
  SetFunctions(kHeaders, {3, kFirst, kFirst + 100, 0, kFirst + 100, kFirst + 120, 0, kFirst + 120, kFirst + 150, 0});
  EXPECT_TRUE(Snapshot(kMapBase + 0x2000 + 149).has_value());
  EXPECT_FALSE(Snapshot(kMapBase + 0x2000 + 150).has_value());
  for (const uint32_t impossible : {0u, 1u << 20}) {
    memory_.Set<uint32_t>(kHeaders + 32, impossible);
    EXPECT_FALSE(Snapshot(kMapBase + 0x2000).has_value()) << impossible;
  }
  SetFunctions(kHeaders, {1, kFirst, kFirst - 4, 0});
  EXPECT_FALSE(Snapshot(kMapBase + 0x2000).has_value()) << "it ends before it begins";
}

// On arm64 a function's length is in instructions, in the first word of its unwind data.
TEST_P(CodeSnapshotTest, FunctionsWithoutAnEndHaveTheirLengthInTheirUnwindData) {
  NibbleHeap heap(GetParam());
  heap.Add(0x2000, 100);
  Place(heap, 0x4000);
  host_bpf.code.function_bytes = WIRE_FUNCTION_WITHOUT_END;
  constexpr uint32_t kOtherFields = 0x5800'0000;
  memory_.Set<uint32_t>(kMapBase + 0x2000 + 0x400, kOtherFields | 100 / 4);
  memory_.Set<uint32_t>(kMapBase + 0x2000 + 0x410, kOtherFields | 20 / 4);
  SetFunctions(kHeaders, {1, kFirst, kFirst + 0x400});
  EXPECT_TRUE(Snapshot(kMapBase + 0x2000 + 99).has_value());
  EXPECT_FALSE(Snapshot(kMapBase + 0x2000 + 100).has_value());
  SetFunctions(kHeaders, {2, kFirst, kFirst + 0x400, kFirst + 100, kFirst + 0x410});
  EXPECT_TRUE(Snapshot(kMapBase + 0x2000 + 119).has_value());
  EXPECT_FALSE(Snapshot(kMapBase + 0x2000 + 120).has_value());
  SetFunctions(kHeaders, {1, kFirst, 60 / 4 << 2 | 1});  // packed
  EXPECT_TRUE(Snapshot(kMapBase + 0x2000 + 59).has_value());
  EXPECT_FALSE(Snapshot(kMapBase + 0x2000 + 60).has_value());
  SetFunctions(kHeaders, {1, kFirst, 0x7000'0000});  // not there
  EXPECT_FALSE(Snapshot(kMapBase + 0x2000).has_value());
}

TEST_P(CodeSnapshotTest, NamesAreOfDynamicMethodsOnlyAndAlwaysEnd) {
  NibbleHeap heap(GetParam());
  heap.Add(0x2000, 300);
  Place(heap, 0x4000);
  memory_.SetText(kName, std::string(500, 'x'));
  EXPECT_EQ(Snapshot(kMapBase + 0x2010)->name, std::string(63, 'x'));
  memory_.Set<uint64_t>(kMethodDesc + 32, 0x10);  // not mapped
  EXPECT_STREQ(Snapshot(kMapBase + 0x2010)->name, "");
  memory_.Set<uint64_t>(kMethodDesc + 32, kName);
  memory_.Set<uint16_t>(kMethodDesc + 6, 5);  // a generic method of a collectible assembly
  EXPECT_STREQ(Snapshot(kMapBase + 0x2010)->name, "");
}

TEST_P(CodeSnapshotTest, AStubHeaderOrAnUnreadableOneIsNoSnapshot) {
  NibbleHeap heap(GetParam());
  heap.Add(0x2000, 300);
  Place(heap, 0x4000);
  for (const uint64_t header : {uint64_t{0}, uint64_t{6}, uint64_t{0xF}, uint64_t{0x123456789000}}) {
    memory_.Set<uint64_t>(kMapBase + 0x2000 - 8, header);
    EXPECT_FALSE(Snapshot(kMapBase + 0x2010).has_value()) << header;
  }
}

TEST_P(CodeSnapshotTest, WhereALeafReturnsToIsSeenWithoutAFrame) {
  constexpr uint64_t kStack = 0x7ffc'0000'1000, kSigned = uint64_t{0x67} << 48;
  NibbleHeap heap(GetParam());
  for (uint64_t i = 0; i < 6; ++i) heap.Add(0x2000 + 0x100 * i, 100);
  Place(heap, 0x4000);
  const auto method = [](uint64_t i) { return kMapBase + 0x2000 + 0x100 * i; };
  // A call may be a method's last instruction: it returns to the byte behind it.
  host_reset();
  host_snapshot_callers(kStack, kSigned | (method(1) + 100));
  ASSERT_EQ(host_snapshot_count(), 1u) << "the stack can't be read";
  EXPECT_EQ(host_snapshot_at(0).start, method(1));
  EXPECT_EQ(host_snapshot_at(0).address, method(1) + 99);

  memory_.Map(kStack, 16 * 8);
  memory_.Set<uint64_t>(kStack, 17);
  memory_.Set<uint64_t>(kStack + 8, kStack + 64);
  memory_.Set<uint64_t>(kStack + 16, method(2) + 50);
  memory_.Set<uint64_t>(kStack + 15 * 8, method(3) + 50);
  host_reset();
  host_snapshot_callers(kStack, 0);
  ASSERT_EQ(host_snapshot_count(), 2u);
  EXPECT_EQ(host_snapshot_at(0).start, method(2));
  EXPECT_EQ(host_snapshot_at(1).start, method(3));

  for (uint64_t i = 0; i < 6; ++i) memory_.Set<uint64_t>(kStack + 8 * i, method(i) + 50);
  host_reset();
  host_snapshot_callers(kStack, 0);
  EXPECT_EQ(host_snapshot_count(), 3u) << "the chain needs room";
}

TEST_P(CodeSnapshotTest, EachMethodOnceAndNoMoreThanThereIsRoomFor) {
  NibbleHeap heap(GetParam());
  for (uint64_t i = 0; i < 12; ++i) heap.Add(0x2000 + 0x100 * i, 100);
  Place(heap, 0x4000);
  host_reset();
  for (uint64_t i = 0; i < 12; ++i) {
    for (uint64_t offset : {0, 50, 99}) host_snapshot(kMapBase + 0x2000 + 0x100 * i + offset);
  }
  ASSERT_EQ(host_snapshot_count(), uint32_t{WIRE_MAX_SNAPSHOTS});
  for (uint32_t i = 0; i < WIRE_MAX_SNAPSHOTS; ++i) EXPECT_EQ(host_snapshot_at(i).start, kMapBase + 0x2000 + 0x100 * i);
}

TEST_P(CodeSnapshotTest, OnlyAddressesInsideTheRangesAreFollowed) {
  NibbleHeap heap(GetParam());
  heap.Add(0x2000, 300);
  Place(heap, 0x4000);
  host_reset();
  EXPECT_FALSE(host_may_be_transient(kHeap - 1));
  EXPECT_TRUE(host_may_be_transient(kHeap));
  EXPECT_TRUE(host_may_be_transient(kMapBase + 0x3FFF));
  EXPECT_FALSE(host_may_be_transient(kMapBase + 0x4000));
  EXPECT_FALSE(Snapshot(kMapBase + 0x4000).has_value());
  host_bpf.has_code = false;
  EXPECT_FALSE(Snapshot(kMapBase + 0x2010).has_value());
  EXPECT_FALSE(host_may_be_transient(kMapBase + 0x2010));
}

}  // namespace
}  // namespace clrsampler
