#include "formats/elf/relative_relocations.h"

#include <gtest/gtest.h>

#include "formats/byte_reader.h"
#include "unit/formats/elf/linked_image.h"

namespace clrsampler {
namespace {

constexpr uint64_t kTable = 0x1000, kData = 0x8000;

absl::StatusOr<RelativeRelocations> Read(const std::string& bytes) {
  const auto image = ElfImage::Parse(AsBytes(bytes));
  EXPECT_TRUE(image.ok()) << image.status();
  return RelativeRelocations::Read(*image);
}

TEST(RelativeRelocationsTest, AreFoundBySlotInAnyOrder) {
  for (const uint16_t machine : {EM_X86_64, EM_AARCH64}) {
    const auto rows = Read(LinkedImage(machine).AddRelocations(kTable, {{0x30, 3}, {0x10, 1}, {0x20, 2}}).Build());
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(rows->all().size(), 3u);
    EXPECT_EQ(rows->At({0x10}), VirtualAddress{1});
    EXPECT_EQ(rows->At({0x30}), VirtualAddress{3});
    EXPECT_EQ(rows->At({0x18}), std::nullopt);
    EXPECT_EQ(rows->At({0x38}), std::nullopt);
    EXPECT_EQ(rows->Within({0x10}, 0x20).size(), 2u);
    EXPECT_EQ(rows->Within({0x11}, 0x20).front().target, VirtualAddress{2});
    EXPECT_TRUE(rows->Within({0x31}, 0x20).empty());
  }
}

TEST(RelativeRelocationsTest, OtherKindsAndOtherSectionsAreNotTaken) {
  LinkedImage image(EM_X86_64);
  image.AddRelocations(kTable, {{0x10, 1}});
  image.Find(".rela.dyn")->bytes += RawBytes(Elf64_Rela{0x20, R_X86_64_64, 2});
  image.Add(
      {.name = ".rela.debug", .type = SHT_RELA, .flags = 0, .bytes = RawBytes(Elf64_Rela{0x30, R_X86_64_RELATIVE, 3})});
  const auto rows = Read(image.Build());
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->all().size(), 1u);
}

TEST(RelativeRelocationsTest, PackedOnesHoldTheirTargetsInPlace) {
  std::string data;
  for (uint64_t i = 0; i < 70; ++i) data += RawBytes(0x100 + i);
  // The slot at kData, then of the next 63 the first, the third and the last; of the 63 behind these the second.
  const uint64_t words[] = {kData, 1 | 1 << 1 | 1 << 3 | uint64_t{1} << 63, 1 | 1 << 2};
  LinkedImage image(EM_X86_64);
  image.Add({.name = ".data", .address = kData, .bytes = data});
  image.Add({.name = ".relr.dyn", .type = 19, .address = kTable, .bytes = RawBytes(words)});
  const auto rows = Read(image.Build());
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->all().size(), 5u);
  for (const uint64_t slot : {0, 1, 3, 63, 65})
    EXPECT_EQ(rows->At({kData + 8 * slot}), VirtualAddress{0x100 + slot}) << slot;
}

TEST(RelativeRelocationsTest, PackedOnesOutsideTheFileAreNone) {
  const uint64_t words[] = {kData, ~uint64_t{0}, ~uint64_t{1}};
  LinkedImage image(EM_X86_64);
  image.Add({.name = ".relr.dyn", .type = 19, .address = kTable, .bytes = RawBytes(words)});
  const auto rows = Read(image.Build());
  ASSERT_TRUE(rows.ok());
  EXPECT_TRUE(rows->all().empty());
}

TEST(RelativeRelocationsTest, OneSlotHasOneTarget) {
  const auto twice = Read(LinkedImage(EM_X86_64).AddRelocations(kTable, {{0x10, 1}, {0x10, 1}}).Build());
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(twice->all().size(), 1u);
  const auto two = Read(LinkedImage(EM_X86_64).AddRelocations(kTable, {{0x10, 1}, {0x20, 1}, {0x10, 2}}).Build());
  EXPECT_TRUE(absl::IsDataLoss(two.status())) << two.status();
}

TEST(RelativeRelocationsTest, ATableThatIsNamedAgainAndAgainIsRefused) {
  std::vector<std::pair<uint64_t, uint64_t>> many(100'000);
  for (uint64_t i = 0; i < many.size(); ++i) many[i] = {8 * i, i};
  LinkedImage image(EM_X86_64);
  image.AddRelocations(kTable, many);
  const LinkedSection table = *image.Find(".rela.dyn");
  ASSERT_TRUE(Read(image.Build()).ok());
  for (int i = 0; i < 10; ++i) image.Add(table);
  EXPECT_TRUE(absl::IsUnimplemented(Read(image.Build()).status()));
}

}  // namespace
}  // namespace clrsampler
