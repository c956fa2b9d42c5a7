#include "formats/runtime/nibble_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/formats/runtime/nibble_heap.h"

namespace clrsampler {
namespace {

NibbleWord WordsOf(const NibbleHeap& heap) {
  return [&heap](uint64_t index) -> std::optional<uint32_t> {
    if (index >= heap.words.size()) return std::nullopt;
    return heap.words[index];
  };
}

class NibbleMapTest : public testing::TestWithParam<NibbleMapVersion> {};

INSTANTIATE_TEST_SUITE_P(Versions, NibbleMapTest, testing::Values(NibbleMapVersion::k1, NibbleMapVersion::k2),
                         [](const auto& one) { return one.param == NibbleMapVersion::k1 ? "V1" : "V2"; });

TEST_P(NibbleMapTest, FindsTheMethodOfEveryByteOfRandomHeaps) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 12; ++round) {
    const NibbleHeap heap = NibbleHeap::Random(GetParam(), random, 40'000);
    ASSERT_GT(heap.methods.size(), 10u);
    const NibbleWord words = WordsOf(heap);
    size_t next = 0;
    const NibbleHeap::Method* method = nullptr;
    for (uint64_t offset = 0; offset < 40'000; ++offset) {
      if (next < heap.methods.size() && heap.methods[next].start == offset) method = &heap.methods[next++];
      const std::optional<uint64_t> start = FindMethodStart(GetParam(), offset, words);
      if (method == nullptr) {
        ASSERT_EQ(start, std::nullopt) << offset;
      } else if (offset < method->start + method->bytes || GetParam() == NibbleMapVersion::k1) {
        // Version 1 does not know where a method ends: behind it, it still is the last.
        ASSERT_EQ(start, method->start) << "round " << round << ", offset " << offset;
      } else if (start) {
        ASSERT_EQ(*start, method->start) << "in the hole behind a method: " << offset;
      }
    }
  }
}

TEST_P(NibbleMapTest, ListsEveryStartOnce) {
  std::mt19937_64 random(12);
  const NibbleHeap heap = NibbleHeap::Random(GetParam(), random, 200'000);
  std::vector<uint64_t> starts, expected;
  for (uint64_t index = 0; index < heap.words.size(); ++index) {
    AppendMethodStarts(GetParam(), index, heap.words[index], starts);
  }
  for (const NibbleHeap::Method& method : heap.methods) expected.push_back(method.start);
  EXPECT_EQ(starts, expected);
}

TEST_P(NibbleMapTest, HostileWordsEndAndAskForNothingBehindTheAddress) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 200'000; ++round) {
    const uint64_t offset = random() % (uint64_t{1} << 40);
    const int kind = static_cast<int>(random() % 4);
    uint64_t reads = 0;
    const std::optional<uint64_t> start =
        FindMethodStart(GetParam(), offset, [&](uint64_t index) -> std::optional<uint32_t> {
          ++reads;
          EXPECT_LE(index, offset / kNibbleWordBytes);
          if (kind == 0 && random() % 3 == 0) return std::nullopt;
          // Mostly empty words, so that the search goes far, and such as no runtime writes.
          return random() % 16 != 0 ? 0 : static_cast<uint32_t>(random()) & static_cast<uint32_t>(random());
        });
    ASSERT_LE(reads, GetParam() == NibbleMapVersion::k1 ? kMaxWordsBack + 1 : 2);
    if (start && GetParam() == NibbleMapVersion::k1) {
      ASSERT_LE(*start, offset);
    }
  }
}

TEST_P(NibbleMapTest, AnEmptyMapIsSearchedOnlySoFar) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{255}, uint64_t{1} << 20, ~uint64_t{0}}) {
    uint64_t reads = 0;
    EXPECT_EQ(FindMethodStart(GetParam(), offset,
                              [&](uint64_t) -> std::optional<uint32_t> {
                                ++reads;
                                return 0;
                              }),
              std::nullopt);
    EXPECT_LE(reads, GetParam() == NibbleMapVersion::k1 ? kMaxWordsBack + 1 : 2);
  }
}

TEST_P(NibbleMapTest, AWordThatCannotBeReadIsNoMethod) {
  NibbleHeap heap(GetParam());
  heap.Add(100, 300);
  for (const uint64_t broken : {0, 1}) {
    EXPECT_EQ(FindMethodStart(GetParam(), 399,
                              [&](uint64_t index) -> std::optional<uint32_t> {
                                if (index == broken) return std::nullopt;
                                return heap.words[index];
                              }),
              std::nullopt);
  }
  EXPECT_EQ(FindMethodStart(GetParam(), 399, WordsOf(heap)), 100u);
}

TEST(NibbleMapV1Test, FindsAMethodOf1MiBAndNoLongerOne) {
  NibbleHeap heap(NibbleMapVersion::k1, 2 << 20);
  heap.Add(32, 2 << 20);
  EXPECT_EQ(FindMethodStart(NibbleMapVersion::k1, kMaxWordsBack * kNibbleWordBytes, WordsOf(heap)), 32u);
  EXPECT_EQ(FindMethodStart(NibbleMapVersion::k1, (kMaxWordsBack + 1) * kNibbleWordBytes, WordsOf(heap)), std::nullopt);
}

TEST(NibbleMapV2Test, PointersTellAllFourStepsOf16Bytes) {
  for (const uint64_t start : {0, 4, 8, 12, 16, 252, 4096 + 28}) {
    NibbleHeap heap(NibbleMapVersion::k2);
    heap.Add(start, 5000);
    for (uint64_t offset = start; offset < start + 5000; offset += 7) {
      ASSERT_EQ(FindMethodStart(NibbleMapVersion::k2, offset, WordsOf(heap)), start) << offset;
    }
  }
}

}  // namespace
}  // namespace clrsampler
