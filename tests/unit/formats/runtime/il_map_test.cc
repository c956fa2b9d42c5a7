#include "formats/runtime/il_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::Optional;

IlMapEntry Entry(uint32_t native, int32_t il, uint32_t sources = IlMapEntry::kStackEmpty) {
  IlMapEntry entry = {};
  entry.native_offset = native & IlMapEntry::kMaxNativeOffset;
  entry.sources = sources & 7;
  entry.il_offset = il;
  return entry;
}

constexpr int32_t kNoMapping = IlMapEntry::kNoMapping;
constexpr int32_t kProlog = IlMapEntry::kProlog;
constexpr int32_t kEpilog = IlMapEntry::kEpilog;

IlMap Map(std::vector<IlMapEntry> entries, uint32_t code_bytes) {
  const absl::StatusOr<IlMap> map = IlMap::Make(std::move(entries), code_bytes);
  EXPECT_TRUE(map.ok()) << map.status();
  return map.value_or(IlMap());
}

auto Is(uint32_t il, IlPlaceKind kind = IlPlaceKind::kInstruction) { return Optional(IlPlace{il, kind}); }

TEST(IlMapTest, TheLastEntryAtOrBeforeTheOffsetCounts) {
  const IlMap map = Map({Entry(0, 0), Entry(4, 7), Entry(10, 3)}, 20);
  EXPECT_THAT(map.Lookup(0, FramePlace::kLeaf), Is(0));
  EXPECT_THAT(map.Lookup(3, FramePlace::kLeaf), Is(0));
  EXPECT_THAT(map.Lookup(4, FramePlace::kLeaf), Is(7));
  EXPECT_THAT(map.Lookup(9, FramePlace::kLeaf), Is(7));
  EXPECT_THAT(map.Lookup(10, FramePlace::kLeaf), Is(3));
  EXPECT_THAT(map.Lookup(19, FramePlace::kLeaf), Is(3));
}

TEST(IlMapTest, ACallerIsInTheCallBeforeItsReturnAddress) {
  const IlMap map = Map({Entry(0, 0), Entry(5, 7)}, 10);
  EXPECT_THAT(map.Lookup(5, FramePlace::kCaller), Is(0));
  EXPECT_THAT(map.Lookup(6, FramePlace::kCaller), Is(7));
  // A call that never returns may be the last instruction.
  EXPECT_THAT(map.Lookup(10, FramePlace::kCaller), Is(7));
  EXPECT_EQ(map.Lookup(0, FramePlace::kCaller), std::nullopt);
}

TEST(IlMapTest, NothingIsFoundOutsideTheCode) {
  const IlMap map = Map({Entry(0, 0), Entry(10, 3)}, 10);
  EXPECT_EQ(map.Lookup(10, FramePlace::kLeaf), std::nullopt);
  EXPECT_EQ(map.Lookup(11, FramePlace::kCaller), std::nullopt);
  EXPECT_EQ(map.Lookup(UINT32_MAX, FramePlace::kLeaf), std::nullopt);
  EXPECT_EQ(IlMap().Lookup(0, FramePlace::kLeaf), std::nullopt);
}

TEST(IlMapTest, CallInstructionsAreLeftOut) {
  const IlMap map = Map({Entry(0, 0), Entry(4, 9, IlMapEntry::kCallInstruction), Entry(8, 12)}, 20);
  EXPECT_THAT(map.Lookup(5, FramePlace::kLeaf), Is(0));
  EXPECT_EQ(map.entries().size(), 2u);
}

TEST(IlMapTest, OfEqualNativeOffsetsTheLaterEntryWins) {
  EXPECT_THAT(Map({Entry(0, kProlog), Entry(0, 5)}, 4).Lookup(0, FramePlace::kLeaf), Is(5));
}

TEST(IlMapTest, ThePrologIsTheFirstInstruction) {
  const IlMap map = Map({Entry(0, kProlog), Entry(6, 5)}, 20);
  EXPECT_THAT(map.Lookup(2, FramePlace::kLeaf), Is(0, IlPlaceKind::kProlog));
}

TEST(IlMapTest, AnEpilogIsTheInstructionBeforeItInNativeCode) {
  // The second return lies before the first in the IL.
  const IlMap map = Map({Entry(0, kProlog), Entry(2, 9), Entry(4, kEpilog), Entry(6, 3), Entry(8, kNoMapping),
                         Entry(9, kEpilog), Entry(9, kEpilog)},
                        20);
  EXPECT_THAT(map.Lookup(5, FramePlace::kLeaf), Is(9, IlPlaceKind::kEpilog));
  EXPECT_THAT(map.Lookup(10, FramePlace::kLeaf), Is(3, IlPlaceKind::kEpilog));
  EXPECT_EQ(Map({Entry(0, kProlog), Entry(2, kEpilog)}, 4).Lookup(3, FramePlace::kLeaf), std::nullopt);
}

TEST(IlMapTest, CodeWithoutMappingStandsForNothing) {
  EXPECT_EQ(Map({Entry(0, 0), Entry(2, kNoMapping)}, 4).Lookup(3, FramePlace::kLeaf), std::nullopt);
}

TEST(IlMapTest, ImpossibleMapsAreRefused) {
  const auto code = [](std::vector<IlMapEntry> entries) { return IlMap::Make(std::move(entries), 8).status().code(); };
  EXPECT_EQ(code({Entry(0, 0), Entry(8, kEpilog)}), absl::StatusCode::kOk);
  EXPECT_EQ(code({Entry(0, 0), Entry(9, 1)}), absl::StatusCode::kDataLoss) << "outside the code";
  EXPECT_EQ(code({Entry(1, 0)}), absl::StatusCode::kDataLoss) << "not from the start";
  EXPECT_EQ(code({Entry(0, 0), Entry(4, 1), Entry(3, 2)}), absl::StatusCode::kDataLoss) << "out of order";
  EXPECT_EQ(code({Entry(0, -4)}), absl::StatusCode::kDataLoss);
}

TEST(IlMapTest, TheHeapIsThatOfTheEntries) {
  EXPECT_EQ(IlMap().heap_bytes(), 0u);
  EXPECT_GE(Map({Entry(0, 0), Entry(4, 7)}, 20).heap_bytes(), 2 * sizeof(IlMapEntry));
}

}  // namespace
}  // namespace clrsampler
