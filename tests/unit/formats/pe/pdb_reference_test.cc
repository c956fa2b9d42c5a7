#include "formats/pe/pdb_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "unit/formats/pdb/pdb_fixture.h"
#include "unit/formats/pe/loaded_fixture.h"

namespace clrsampler {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Where the debug directory of a file is, and how many bytes it has.
std::pair<size_t, uint32_t> DebugRows(const std::string& file) {
  const auto pe = PeImage::Parse(AsBytes(file));
  return {*pe->OffsetOfRva(pe->debug_directory().rva), pe->debug_directory().bytes};
}

void Put32(std::string& file, size_t offset, uint32_t value) {
  std::memcpy(file.data() + offset, &value, sizeof value);
}

TEST(PdbReferenceTest, AnAssemblySaysWhichPdbIsIts) {
  const std::string file = ReadPdbFixture("linked.dll");
  const auto pe = PeImage::Parse(AsBytes(file));
  ASSERT_TRUE(pe.ok()) << pe.status();
  const std::vector<PdbReference> references = PdbReferences(*pe);
  ASSERT_THAT(references, SizeIs(1));
  EXPECT_EQ(references[0].age, 1u);
  EXPECT_EQ(references[0].path, "/_/obj/linked.pdb");
  EXPECT_EQ(PdbIdText(references[0].id), "4bc0b10f-0476-4a02-9162-cb4f7377d4c6-e8520945");
  EXPECT_EQ(PdbServerKey(references[0].id), "4bc0b10f04764a029162cb4f7377d4c6ffffffff");
  const std::vector<PdbChecksum> checksums = PdbChecksums(*pe);
  ASSERT_THAT(checksums, SizeIs(1));
  EXPECT_EQ(checksums[0].algorithm, "SHA256");
  EXPECT_EQ(absl::BytesToHexString(AsText(checksums[0].hash)),
            "0fb1c04b7604025a5162cb4f7377d4c6450952e8e501c5055be6975f8f2418b1");
  EXPECT_EQ(EmbeddedPdb(*pe), std::nullopt);
}

TEST(PdbReferenceTest, ALoadedImageSaysTheSame) {
  const std::string file = ReadPdbFixture("embedded.dll"), memory = LaidOut(file);
  const auto from_file = PeImage::Parse(AsBytes(file));
  const auto loaded = PeImage::Parse(AsBytes(memory), PeLayout::kLoaded);
  ASSERT_TRUE(from_file.ok() && loaded.ok());
  ASSERT_THAT(PdbReferences(*loaded), SizeIs(1));
  EXPECT_EQ(PdbReferences(*loaded)[0].id, PdbReferences(*from_file)[0].id);
  ASSERT_TRUE(EmbeddedPdb(*loaded).has_value() && EmbeddedPdb(*from_file).has_value());
  EXPECT_EQ(AsText(*EmbeddedPdb(*loaded)), AsText(*EmbeddedPdb(*from_file)));
}

// A perf-map entry has the same fields at the same places: magic, 16 bytes, a number, a name.
TEST(PdbReferenceTest, TheCopyOfALoadedImageKeepsIt) {
  std::string file = ReadFixture("10.0.14-x64/shapes.dll");
  const auto [rows, bytes] = DebugRows(file);
  size_t row = rows;
  while (*LoadAt<uint32_t>(AsBytes(file), row + 12) != kPerfMapDebugEntryType) row += 28;
  ASSERT_LT(row, rows + bytes);
  Put32(file, row + 4, 0x5A5A5A5A);
  Put32(file, row + 8, 0x504D0000);
  Put32(file, row + 12, kCodeViewDebugEntryType);
  Put32(file, *LoadAt<uint32_t>(AsBytes(file), row + 24), 0x53445352);
  const std::string memory = LaidOut(file);
  std::vector<std::byte> copy(memory.size());
  const auto loaded = CopyLoadedImage(ReaderOf(memory), 1 << 20, copy);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_THAT(PdbReferences(loaded->pe), SizeIs(1));
  EXPECT_EQ(PdbReferences(loaded->pe)[0].path, "shapes.ni.r2rmap");
  EXPECT_EQ(PdbIdText(PdbReferences(loaded->pe)[0].id).substr(37), "5a5a5a5a");
}

TEST(PdbReferenceTest, EntriesThatAreNotWholeAreNone) {
  const std::string file = ReadPdbFixture("embedded.dll");
  const auto [rows, bytes] = DebugRows(file);
  for (size_t row = rows; row < rows + bytes; row += 28) {
    const uint32_t whole = *LoadAt<uint32_t>(AsBytes(file), row + 16);
    const uint32_t type = *LoadAt<uint32_t>(AsBytes(file), row + 12);
    for (uint32_t size = 0; size < std::min<uint32_t>(whole, 40); ++size) {
      std::string damaged = file;
      Put32(damaged, row + 16, size);
      const auto pe = PeImage::Parse(AsBytes(damaged));
      ASSERT_TRUE(pe.ok());
      if (type == kCodeViewDebugEntryType) {
        EXPECT_THAT(PdbReferences(*pe), IsEmpty()) << size;
      }
      if (type == kPdbChecksumDebugEntryType) {
        EXPECT_EQ(PdbChecksums(*pe).size(), size >= 7 ? 1u : 0u);
      }
      if (type == kEmbeddedPdbDebugEntryType) {
        EXPECT_EQ(EmbeddedPdb(*pe).has_value(), size >= 4);
      }
    }
    for (const uint32_t lie : {uint32_t{0x7FFFFFFF}, uint32_t{0xFFFFFFFF}}) {
      std::string damaged = file;
      Put32(damaged, row + 16, lie);
      const auto pe = PeImage::Parse(AsBytes(damaged));
      EXPECT_TRUE(pe->DebugEntries()[(row - rows) / 28].data.empty());
      Put32(damaged, row + 24, lie);
      EXPECT_TRUE(PeImage::Parse(AsBytes(damaged))->DebugEntries()[(row - rows) / 28].data.empty());
    }
  }
}

TEST(PdbReferenceTest, WindowsPdbsAreNotReferredTo) {
  std::string file = ReadPdbFixture("linked.dll");
  const size_t row = DebugRows(file).first;
  ASSERT_EQ(*LoadAt<uint32_t>(AsBytes(file), row + 12), kCodeViewDebugEntryType);
  Put32(file, row + 8, 0);
  EXPECT_THAT(PdbReferences(*PeImage::Parse(AsBytes(file))), IsEmpty());
}

TEST(PdbReferenceTest, NoMoreThan64EntriesAreLookedAt) {
  std::string file = ReadPdbFixture("linked.dll");
  const std::string row = file.substr(DebugRows(file).first, 28);
  auto pe = PeImage::Parse(AsBytes(file));
  // The directory of one entry, moved to the end of its section and repeated there.
  const PeSection section = pe->sections()[0];
  std::string many;
  for (int i = 0; i < 70; ++i) many += row;
  file.resize(section.file_offset);
  file += many;
  const size_t header = *LoadAt<uint32_t>(AsBytes(file), 0x3C);
  const size_t directory = header + 24 + 112 + size_t{8} * 6;
  Put32(file, directory, section.rva);
  Put32(file, directory + 4, static_cast<uint32_t>(many.size()));
  const size_t section_row = header + 24 + *LoadAt<uint16_t>(AsBytes(file), header + 20);
  Put32(file, section_row + 16, static_cast<uint32_t>(many.size()));
  Put32(file, header + 24 + 112 + size_t{8} * 14 + 4, 0);  // no CLI header
  pe = PeImage::Parse(AsBytes(file));
  ASSERT_TRUE(pe.ok()) << pe.status();
  EXPECT_THAT(pe->DebugEntries(), SizeIs(64));
}

}  // namespace
}  // namespace clrsampler
