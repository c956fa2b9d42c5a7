#include "symbols/sorted_blocks.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>

namespace clrsampler {
namespace {

using Blocks = SortedBlocks<uint32_t>;

void ExpectSame(const Blocks& blocks, const std::map<uint64_t, uint32_t>& map, int seed) {
  ASSERT_EQ(blocks.size(), map.size()) << seed;
  Blocks::Position at = blocks.Begin();
  for (const auto& [key, value] : map) {
    ASSERT_NE(at, blocks.End()) << seed;
    ASSERT_EQ(blocks.KeyAt(at), key) << seed;
    ASSERT_EQ(blocks.ValueAt(at), value) << seed;
    at = blocks.UpperBound(key);
  }
  ASSERT_EQ(at, blocks.End()) << seed;
}

// Long runs of insertions and of erasures in turn, so that blocks split, thin out, join and vanish.
TEST(SortedBlocksTest, AgreesWithAMapUnderRandomChanges) {
  for (int seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    Blocks blocks;
    std::map<uint64_t, uint32_t> map;
    for (int step = 0; step < 4000; ++step) {
      const uint64_t key = random() % 3000;
      const Blocks::Position above = blocks.UpperBound(key);
      const auto mirror_above = map.upper_bound(key);
      ASSERT_EQ(above == blocks.Begin(), mirror_above == map.begin());
      ASSERT_EQ(above == blocks.End(), mirror_above == map.end());
      if (mirror_above != map.end()) {
        ASSERT_EQ(blocks.KeyAt(above), mirror_above->first);
      }
      if (step / 1000 % 2 == 0) {
        const auto value = static_cast<uint32_t>(random());
        if (map.emplace(key, value).second) blocks.Insert(above, key, value);
        continue;
      }
      if (mirror_above == map.begin()) continue;
      Blocks::Position at = blocks.Before(above);
      auto mirror = std::prev(mirror_above);
      // Some in a row, each from the position that the last one returned.
      for (uint64_t count = random() % 8; count > 0 && mirror != map.end(); --count) {
        ASSERT_EQ(blocks.KeyAt(at), mirror->first);
        mirror = map.erase(mirror);
        at = blocks.Erase(at);
        ASSERT_EQ(at == blocks.End(), mirror == map.end());
      }
    }
    ExpectSame(blocks, map, seed);
  }
}

TEST(SortedBlocksTest, AppendingInOrderFillsAndFindsAll) {
  Blocks blocks;
  for (uint32_t i = 0; i < 1000; ++i) blocks.Insert(blocks.End(), i * 10, i);
  for (uint32_t i = 0; i < 1000; ++i) {
    const Blocks::Position above = blocks.UpperBound(i * 10 + 9);
    ASSERT_EQ(blocks.ValueAt(blocks.Before(above)), i);
    ASSERT_EQ(above == blocks.End(), i == 999);
  }
  blocks.Clear();
  EXPECT_TRUE(blocks.empty());
  EXPECT_EQ(blocks.UpperBound(5), blocks.End());
}

}  // namespace
}  // namespace clrsampler
