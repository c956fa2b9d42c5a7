#include "formats/pe/pe_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "unit/formats/pe/fixture.h"

namespace clrsampler {
namespace {

TEST(PeImageTest, ReadsWhatCrossgenWrote) {
  const std::string bytes = ReadFixture("9.0.19-arm64/shapes.dll");
  const auto pe = PeImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(pe.ok()) << pe.status();
  EXPECT_EQ(pe->machine(), PeMachine::kArm64);
  EXPECT_EQ(pe->os(), PeOs::kLinux);
  ASSERT_TRUE(pe->r2r().has_value());
  EXPECT_EQ(pe->r2r()->major, 10);
  EXPECT_EQ(pe->r2r()->minor, 1);
  EXPECT_NE(pe->r2r()->core.Find(R2rSectionType::kRuntimeFunctions), nullptr);
  EXPECT_EQ(pe->r2r()->core.Find(R2rSectionType::kOwnerCompositeExecutable), nullptr);
  EXPECT_TRUE(
      std::any_of(pe->sections().begin(), pe->sections().end(), [](const PeSection& s) { return s.executable; }));
}

TEST(PeImageTest, TheDebugEntryHasTheSignatureOfTheMap) {
  for (const char* folder : {"8.0.30-x64", "9.0.19-arm64", "10.0.14-x64-hot-cold"}) {
    const std::string bytes = ReadFixture(absl::StrCat(folder, "/shapes.dll"));
    const auto pe = PeImage::Parse(AsBytes(bytes));
    ASSERT_TRUE(pe.ok());
    const std::vector<PerfMapDebugEntry> entries = pe->PerfMapEntries();
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0].file_name, "shapes.ni.r2rmap");
    EXPECT_EQ(entries[0].version, 1u);
    const absl::string_view raw(reinterpret_cast<const char*>(entries[0].signature.data()),
                                entries[0].signature.size());
    EXPECT_EQ(absl::AsciiStrToUpper(absl::BytesToHexString(raw)),
              ReadFixtureMap(absl::StrCat(folder, "/shapes.ni.r2rmap")).signature);
  }
}

TEST(PeImageTest, OffsetsAndAddressesAreInverse) {
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto pe = PeImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(pe.ok());
  uint32_t in_sections = 0;
  for (uint64_t offset = 0; offset < bytes.size() + 100; ++offset) {
    const auto rva = pe->RvaOfOffset(offset);
    if (!rva) continue;
    ++in_sections;
    ASSERT_EQ(pe->OffsetOfRva(*rva), offset);
    ASSERT_NE(*rva, offset);  // crossgen2 keeps every section 64 KiB away from its file offset
  }
  EXPECT_GT(in_sections, bytes.size() - 1024);
  EXPECT_EQ(pe->RvaOfOffset(0), std::nullopt);  // headers are in no section
  EXPECT_EQ(pe->OffsetOfRva(0xFFFFFFFF), std::nullopt);
  EXPECT_EQ(pe->Bytes({0xFFFFFFF0, 0x20}), std::nullopt);
}

TEST(PeImageTest, BytesFromAnAddressEndWithTheFile) {
  const std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto pe = PeImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(pe.ok());
  const PeSection& last = pe->sections().back();
  ASSERT_EQ(last.file_offset + last.file_bytes, bytes.size());
  const uint32_t rva = last.rva + last.file_bytes - 8;
  EXPECT_EQ(pe->BytesFrom(rva, 5).data(), pe->file().data() + bytes.size() - 8);
  EXPECT_EQ(pe->BytesFrom(rva, 5).size(), 5u);
  EXPECT_EQ(pe->BytesFrom(rva, 100).size(), 8u);
  EXPECT_TRUE(pe->BytesFrom(rva + 8, 100).empty());
  EXPECT_TRUE(pe->BytesFrom(0xFFFFFFFF, 100).empty());
  // The sections of a file that is cut still lie behind its end.
  const auto cut = PeImage::Parse(AsBytes(bytes).first(last.file_offset + 4));
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->BytesFrom(last.rva, 100).size(), 4u);
  EXPECT_TRUE(cut->BytesFrom(last.rva + 4, 100).empty());
}

TEST(PeImageTest, OtherFilesAreNotPe) {
  EXPECT_FALSE(PeImage::Parse({}).ok());
  EXPECT_FALSE(PeImage::Parse(AsBytes("MZ")).ok());
  EXPECT_FALSE(
      LooksLikePe(AsBytes("\x7F"
                          "ELF")));
  std::string header(64, '\0');
  header[0] = 'M', header[1] = 'Z', header[0x3C] = '\xF0', header[0x3F] = '\x7F';  // e_lfanew far outside
  EXPECT_FALSE(LooksLikePe(AsBytes(header)));
}

TEST(PeImageTest, IlOnlyHasMetadataAndNoCode) {
  std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const size_t header = bytes.find(std::string("RTR\0", 4));
  ASSERT_NE(header, std::string::npos);
  bytes[header] = 'X';  // an NGen or unknown native header
  const auto pe = PeImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(pe.ok());
  EXPECT_FALSE(pe->r2r().has_value());
  EXPECT_TRUE(pe->metadata().has_value());
  EXPECT_EQ(OpenR2r(bytes).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace clrsampler
