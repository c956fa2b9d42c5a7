#include "capture/transient_code_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;

constexpr uint64_t kPage = 1ull << WIRE_CODE_PAGE_SHIFT;

wire_transient_heap Heap(uint64_t begin, uint64_t end) { return {begin, end, begin, 0x1000}; }

TEST(PagesOfTest, AHeapHasEachPageThatItLiesIn) {
  size_t left_out = 7;
  const std::vector heaps = {Heap(3 * kPage + 40, 4 * kPage), Heap(8 * kPage, 10 * kPage + 1)};
  const TransientPages pages = PagesOf(heaps, 100, left_out);
  EXPECT_THAT(pages, ElementsAre(Key(3), Key(8), Key(9), Key(10)));
  EXPECT_EQ(pages.at(9).begin, 8 * kPage);
  EXPECT_EQ(left_out, 0u);
}

TEST(PagesOfTest, OfTwoHeapsInOnePageTheSecondIsLeftOut) {
  size_t left_out = 0;
  const std::vector heaps = {Heap(3 * kPage, 3 * kPage + 100), Heap(3 * kPage + 100, 4 * kPage)};
  const TransientPages pages = PagesOf(heaps, 100, left_out);
  ASSERT_THAT(pages, ElementsAre(Key(3)));
  EXPECT_EQ(pages.at(3).end, 3 * kPage + 100);
  EXPECT_EQ(left_out, 1u);
}

TEST(PagesOfTest, NoHeapTakesMoreThanTheLimit) {
  size_t left_out = 0;
  const std::vector heaps = {Heap(kPage, 1ull << 48), Heap(0, kPage)};
  EXPECT_EQ(PagesOf(heaps, 100, left_out).size(), 100u);
  EXPECT_EQ(left_out, 2u);
}

TEST(PagesOfTest, WhatIsNoRangeHasNoPage) {
  size_t left_out = 0;
  const std::vector heaps = {Heap(kPage, kPage), Heap(2 * kPage, kPage), Heap(kPage, (1ull << 48) + 1)};
  EXPECT_THAT(PagesOf(heaps, 100, left_out), IsEmpty());
  EXPECT_EQ(left_out, 3u);
}

}  // namespace
}  // namespace clrsampler
