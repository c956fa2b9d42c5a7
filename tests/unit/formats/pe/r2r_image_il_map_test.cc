// IL maps of the images of tests/testdata/r2r. Counts and maps in here come from a reader in Python, which shares no
// code with ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/pe/r2r_image.h"
#include "unit/formats/pe/fixture.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::Optional;
using testing::Pair;

struct MappedImage {
  const char* image;
  size_t entries;
};
void PrintTo(const MappedImage& variant, std::ostream* out) { *out << variant.image; }

class EveryMappedImage : public testing::TestWithParam<MappedImage> {};

INSTANTIATE_TEST_SUITE_P(
    R2rImageIlMapTest, EveryMappedImage,
    testing::Values(MappedImage{"8.0.30-x64/shapes.dll", 398}, MappedImage{"8.0.30-arm64/shapes.dll", 403},
                    MappedImage{"9.0.19-x64/shapes.dll", 394}, MappedImage{"9.0.19-arm64/shapes.dll", 396},
                    MappedImage{"10.0.14-x64/shapes.dll", 385}, MappedImage{"10.0.14-arm64/shapes.dll", 387},
                    MappedImage{"10.0.14-x64-hot-cold/shapes.dll", 385},
                    MappedImage{"10.0.14-x64-composite/both.r2r.dll", 428}));

TEST_P(EveryMappedImage, EveryMethodHasAWholeMap) {
  const std::string bytes = ReadFixture(GetParam().image);
  const auto image = OpenR2r(bytes);
  ASSERT_TRUE(image.ok()) << image.status();
  const uint32_t instruction_bytes = (*image)->pe().machine() == PeMachine::kArm64 ? 4 : 1;
  size_t entries = 0;
  for (uint32_t i = 0; i < (*image)->function_count(); ++i) {
    const auto map = (*image)->IlMapOf(i);
    if ((*image)->Function(i)->part != R2rPart::kBody) {
      EXPECT_EQ(map.status().code(), absl::StatusCode::kNotFound) << map.status();
      continue;
    }
    ASSERT_TRUE(map.ok()) << i << " " << map.status();
    entries += map->entries().size();
    for (const IlMapEntry& entry : map->entries()) {
      EXPECT_EQ(entry.native_offset % instruction_bytes, 0u);
    }
  }
  EXPECT_EQ(entries, GetParam().entries);
}

TEST_P(EveryMappedImage, PlacesCountFromTheMethodThroughItsFunclets) {
  const std::string bytes = ReadFixture(GetParam().image);
  const auto image = OpenR2r(bytes);
  ASSERT_TRUE(image.ok());
  for (uint32_t i = 0; i < (*image)->function_count(); ++i) {
    const R2rFunction function = *(*image)->Function(i);
    if (function.part == R2rPart::kCold) {
      EXPECT_EQ((*image)->PlaceOf(function.begin, FramePlace::kLeaf), std::nullopt);
      continue;
    }
    const uint32_t begin = (*image)->Function(function.method)->begin;
    const auto map = (*image)->IlMapOf(function.method);
    ASSERT_TRUE(map.ok());
    for (uint32_t rva = function.begin; rva < function.end; ++rva) {
      const R2rCodePlace leaf = {function.method, rva - begin}, caller = {function.method, rva + 1 - begin};
      ASSERT_EQ((*image)->PlaceOf(rva, FramePlace::kLeaf), leaf);
      // A return address may lie where the next function begins.
      ASSERT_EQ((*image)->PlaceOf(rva + 1, FramePlace::kCaller), caller);
      ASSERT_EQ(map->Lookup(leaf.native_offset, FramePlace::kLeaf),
                map->Lookup(caller.native_offset, FramePlace::kCaller));
    }
  }
  EXPECT_EQ((*image)->PlaceOf(0, FramePlace::kCaller), std::nullopt);
  EXPECT_EQ((*image)->PlaceOf(UINT32_MAX, FramePlace::kLeaf), std::nullopt);
}

// Native and IL offset of each entry.
std::vector<std::pair<uint32_t, int32_t>> Entries(const R2rImage& image, uint32_t method) {
  std::vector<std::pair<uint32_t, int32_t>> entries;
  const auto map = image.IlMapOf(method);
  EXPECT_TRUE(map.ok()) << map.status();
  if (!map.ok()) return entries;
  for (const IlMapEntry& entry : map->entries()) entries.emplace_back(entry.native_offset, entry.il_offset);
  return entries;
}

TEST(R2rImageIlMapTest, MapsSayWhatAnotherReaderReads) {
  const std::string eight = ReadFixture("8.0.30-x64/shapes.dll"), ten = ReadFixture("10.0.14-x64/shapes.dll");
  const auto of_8 = OpenR2r(eight), of_10 = OpenR2r(ten);
  ASSERT_TRUE(of_8.ok() && of_10.ok());
  EXPECT_THAT(Entries(**of_8, 0), ElementsAre(Pair(0, -2), Pair(0, 0), Pair(2, 7), Pair(5, 14), Pair(5, -3)));
  EXPECT_THAT(Entries(**of_8, 13), ElementsAre(Pair(0, -2), Pair(10, 0), Pair(20, -3), Pair(22, -1)));
  // Its two last entries lie in funclets.
  EXPECT_THAT(Entries(**of_10, 20), ElementsAre(Pair(0, -2), Pair(18, 0), Pair(23, 31), Pair(29, 70), Pair(45, -3),
                                                Pair(56, 3), Pair(119, 30), Pair(204, 69)));
  // Three entries of five bits, and 32 bytes that say nothing.
  EXPECT_THAT(Entries(**of_10, 4), ElementsAre(Pair(0, -2), Pair(0, 0), Pair(4, -3)));
}

TEST(R2rImageIlMapTest, AMethodThatSharesTheMapOfAnotherHasTheSame) {
  // add_Changed and remove_Changed.
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto image = OpenR2r(bytes);
  ASSERT_TRUE(image.ok());
  EXPECT_THAT(Entries(**image, 9), ElementsAre(Pair(0, -2), Pair(19, 0), Pair(30, 7), Pair(54, 22), Pair(70, 36),
                                               Pair(78, 40), Pair(78, -3)));
  EXPECT_EQ(Entries(**image, 9), Entries(**image, 8));
}

TEST(R2rImageIlMapTest, WhatIsNoMethodHasNone) {
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto image = OpenR2r(bytes);
  ASSERT_TRUE(image.ok());
  for (const uint32_t method : {(*image)->function_count(), UINT32_MAX}) {
    EXPECT_EQ((*image)->IlMapOf(method).status().code(), absl::StatusCode::kNotFound);
  }
}

// Each byte of the section, changed three ways. A map that still decodes stays within the method.
TEST(R2rImageIlMapTest, DamagedSectionsGiveErrorsOrMapsInBounds) {
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto whole = PeImage::Parse(AsBytes(bytes));
  const R2rSection* section = whole->r2r()->core.Find(R2rSectionType::kDebugInfo);
  ASSERT_NE(section, nullptr);
  const size_t offset = *whole->OffsetOfRva(section->range.rva);
  int refused = 0;
  for (size_t at = offset; at < offset + section->range.bytes; ++at) {
    for (const int change : {0x01, 0x80, 0xFF}) {
      std::string copy = bytes;
      copy[at] = static_cast<char>(copy[at] ^ change);
      const auto image = OpenR2r(copy);
      ASSERT_TRUE(image.ok());
      for (uint32_t i = 0; i < (*image)->function_count(); ++i) {
        const auto map = (*image)->IlMapOf(i);
        refused += absl::IsDataLoss(map.status());
        if (!map.ok() || map->entries().empty()) continue;
        EXPECT_LE(map->entries().back().native_offset, map->code_bytes());
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace clrsampler
