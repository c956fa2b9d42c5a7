// Files that lie: each gives an error that says where, and costs no more than its own size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "formats/byte_reader.h"
#include "formats/mip/mip_document.h"
#include "formats/mip/mip_map.h"
#include "formats/mip/mip_merge.h"
#include "formats/mip/mip_reader.h"
#include "formats/mip/mip_writer.h"
#include "status/status.h"
#include "unit/formats/mip/made_up_mip.h"

namespace clrsampler {
namespace {

using namespace test_support;
using ::testing::HasSubstr;

constexpr MipLayout kLayouts[] = {MipLayout::kDocumented, MipLayout::kLlvm, MipLayout::kOld};

template <typename T>
std::string With(std::string bytes, size_t at, T value) {
  return bytes.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
}

std::string ErrorOf(const absl::Status& status) {
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}
std::string MipError(const std::string& bytes) { return ErrorOf(ReadMip(AsBytes(bytes)).status()); }
std::string MapError(const std::string& bytes) { return ErrorOf(ReadMipMap(AsBytes(bytes)).status()); }
std::string TextError(const std::string& text) { return ErrorOf(ReadMipDocument(text).status()); }

TEST(MipHostileTest, AProfileCutAtEveryByteIsAnErrorThatSaysWhere) {
  const MipProfile profile = MadeUpProfile({.functions = 6, .counted = true});
  for (const MipLayout layout : kLayouts) {
    const std::string bytes = *MipBytes(profile, layout);
    for (size_t length = 0; length < bytes.size(); ++length) {
      const std::string error = MipError(bytes.substr(0, length));
      EXPECT_TRUE(absl::StrContains(error, "byte")) << length << ": " << error;
    }
    EXPECT_THAT(MipError(bytes + "x"), HasSubstr("FunctionNamesLength"));
  }
}

TEST(MipHostileTest, AMapCutAtEveryByteIsAnErrorOrEndsBetweenEntries) {
  const MipProfile profile = MadeUpProfile({.functions = 6});
  for (const MipMapShape& shape :
       {MipMapShape{}, MipMapShape{.is_32_bit = true}, MipMapShape{.layout = MipLayout::kOld}}) {
    const std::string bytes = *MipMapBytes(profile, shape);
    size_t whole = 0;
    for (size_t length = 0; length < bytes.size(); ++length) {
      const absl::StatusOr<MipMap> map = ReadMipMap(AsBytes(bytes.substr(0, length)));
      if (!map.ok()) {
        EXPECT_THAT(std::string(map.status().message()), HasSubstr("byte")) << length;
      } else {
        whole = std::max(whole, map->profile.functions.size());
      }
    }
    EXPECT_EQ(whole, 5u);  // the format has no count, so entries that are not there are not missed
  }
}

TEST(MipHostileTest, ARawFileCutAtEveryByteIsRefused) {
  for (const uint32_t kinds : {kCoverageAndBlocks, kCountsAndBlocks}) {
    MipProfile profile = MadeUpProfile({.functions = 6, .kinds = kinds});
    const std::vector<std::string> before = Contents(profile);
    const std::string raw = MadeUpRaw(profile, 1);
    for (size_t length = 0; length < raw.size(); ++length) {
      const std::string cut = raw.substr(0, length);
      EXPECT_THAT(ErrorOf(MipRawMerger(profile, false).Merge(AsBytes(cut)).status()), HasSubstr("byte")) << length;
    }
    EXPECT_EQ(Contents(profile), before);
  }
}

TEST(MipHostileTest, CountsLargerThanTheFileAllocateNothing) {
  const std::string mip = *MipBytes(MadeUpProfile({.functions = 3, .max_blocks = 0, .odd_names = false}));
  EXPECT_THAT(MipError(With(mip, 32, uint64_t{1} << 60)), HasSubstr("at byte 32: ProfileCount is 1152921504606846976"));
  EXPECT_THAT(MipError(With(mip, 32, uint64_t{4})), HasSubstr("byte"));
  EXPECT_THAT(MipError(With(mip, 40 + 24, uint32_t{0xFFFFFFFF})),
              HasSubstr("at byte 64: NonEntryBlockCount of function 0 is 4294967295"));
  EXPECT_THAT(MipError(With(mip, 40 + 48, uint32_t{1})), HasSubstr("at byte 88: function 0 has call edges"));
  EXPECT_THAT(MipError(With(mip, 40 + 3 * 52, ~uint64_t{0})), HasSubstr("at byte 196: FunctionNamesLength"));
  const std::string map = *MipMapBytes(MadeUpProfile({.functions = 1, .max_blocks = 0}), {});
  EXPECT_THAT(MapError(With(map, 56, uint32_t{0xFFFFFFFF})),
              HasSubstr("in the entry at byte 0x20: NonEntryBlockCount is 4294967295"));
  EXPECT_THAT(MapError(With(map, 60, uint32_t{0xFFFFFFFF})), HasSubstr("in the entry at byte 0x20: the file ends"));
}

TEST(MipHostileTest, CoverageOfABlockIsNoOrYes) {
  const MipProfile profile = MadeUpProfile({.functions = 1, .max_blocks = 0});
  MipProfileBuilder builder(kCoverageAndBlocks, kModule);
  const uint32_t offset = 4;
  ASSERT_TRUE(builder.Add({.name = "f", .block_offsets = {&offset, 1}}).ok());
  const std::string bytes = *MipBytes(std::move(builder).Build());
  EXPECT_THAT(MipError(With(bytes, 40 + 48 + 4, uint8_t{2})), HasSubstr("at byte 92: IsCovered"));
}

TEST(MipHostileTest, OverlappingRecordsOfAMapAreAnError) {
  MipProfileBuilder builder(kCounts, kModule);
  ASSERT_TRUE(builder.Add({.name = "one", .raw_offset = 32}).ok());
  ASSERT_TRUE(builder.Add({.name = "two", .raw_offset = 39}).ok());
  EXPECT_THAT(
      MapError(*MipMapBytes(std::move(builder).Build(), {})),
      HasSubstr("in the entry at byte 0x48: its record at byte 0x27 of a raw file overlaps that of the entry at "
                "byte 0x20"));
}

TEST(MipHostileTest, HeadersThatAreNone) {
  const std::string mip = *MipBytes(MadeUpProfile({.functions = 1}));
  EXPECT_THAT(MipError("ELF" + mip), HasSubstr("does not begin with the bytes FB 4D 49 50"));
  EXPECT_THAT(MipError(With(mip, 4, uint16_t{9})), HasSubstr("version 9"));
  for (const uint16_t type : {0x0, 0x3, 0xC, 0x38, 0x48, 0x108}) {
    EXPECT_THAT(MipError(With(mip, 6, type)), HasSubstr("byte 6: FileType")) << type;
  }
  for (const uint16_t type : {0x08, 0x18, 0x28}) EXPECT_TRUE(ReadMip(AsBytes(With(mip, 6, type))).ok()) << type;
  EXPECT_THAT(MipError(With(mip, 6, uint16_t{2})), HasSubstr("never defined"));
  EXPECT_THAT(MipError(With(mip, 6, uint16_t{0x11})), HasSubstr("it is a .mipraw file"));
  EXPECT_THAT(MipError(With(mip, 8, uint32_t{0x10})), HasSubstr("return addresses"));
  for (const uint32_t kinds : {0x0u, 0x2u, 0x9u, 0xDu, 0x21u}) {
    EXPECT_THAT(MipError(With(mip, 8, kinds)), HasSubstr("byte 8: ProfileType")) << kinds;
  }
  for (const uint32_t offset : {0u, 0x18u, 0x1Fu, 0x80000000u}) {
    EXPECT_THAT(MipError(With(mip, 28, offset)), HasSubstr("byte 28: OffsetToData")) << offset;
  }
}

// Signatures that no name has: the functions stay, without names.
TEST(MipHostileTest, WrongHashesLeaveFunctionsNameless) {
  const MipProfile profile = MadeUpProfile({.functions = 3, .odd_names = false});
  for (const MipLayout layout : kLayouts) {
    const std::string bytes = *MipBytes(profile, layout);
    const size_t first = TraitsOf(layout).header_bytes + 8;
    const absl::StatusOr<MipProfile> read = ReadMip(AsBytes(With(bytes, first, uint64_t{42})));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->NameOf(read->functions[0]), "");
    EXPECT_EQ(read->NameOf(read->functions[1]), profile.NameOf(profile.functions[1]));
  }
}

// Written with the other number before the names, as nobody does who follows one of the layouts.
TEST(MipHostileTest, EitherNumberBeforeTheNamesIsReadIfTheNamesAreThoseOfFunctions) {
  const MipProfile profile = MadeUpProfile({.functions = 3, .odd_names = false});
  for (const MipLayout layout : kLayouts) {
    const std::string bytes = *MipBytes(profile, layout);
    const size_t number = bytes.size() - 3 * 21 - 8;
    const uint64_t other = TraitsOf(layout).names_counted ? 3 * 21 : 3;
    const absl::StatusOr<MipProfile> read = ReadMip(AsBytes(With(bytes, number, other)));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(Contents(*read), Contents(profile));
    EXPECT_THAT(MipError(With(With(bytes, number, other), number + 8, 'y')), HasSubstr("FunctionNamesLength"));
  }
}

// A file that can be read both ways: the one whose names have the functions' signatures is meant.
TEST(MipHostileTest, SignaturesDecideBetweenLayouts) {
  // 8 bytes of name length and 60 of record, which are 52 and 16 in the other layout.
  MipProfileBuilder builder(kCounts, kModule);
  ASSERT_TRUE(builder.Add({.name = "abcdefg", .raw_offset = 0, .start_offset = 0, .size = 8}).ok());
  const std::string wide = *MipBytes(std::move(builder).Build(), MipLayout::kLlvm);
  const absl::StatusOr<MipProfile> read = ReadMip(AsBytes(wide));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->layout, MipLayout::kLlvm);
  EXPECT_EQ(read->NameOf(read->functions[0]), "abcdefg");
}

constexpr char kHeader[] = "Header: {File Type: [.mip], Profile Type: [Function Coverage], Module Hash: 0x1}\n";

TEST(MipHostileTest, DocumentsSayTheLineAndTheFunction) {
  const std::string header = kHeader;
  EXPECT_THAT(TextError(""), HasSubstr("ends before"));
  EXPECT_THAT(TextError("Profiles: []\n"), HasSubstr("no File Type"));
  EXPECT_THAT(TextError("[1, 2]"), HasSubstr("line 1: not a profile: an unexpected list"));
  EXPECT_THAT(TextError(header + "Profiles:\n- Function Name: f\n  Function Size: big\n"),
              HasSubstr("line 4: not a profile: \"big\" in Function Size of function 0 (f) is no number"));
  EXPECT_THAT(TextError(header + "Profiles:\n- Function Name: f\n  Function Size: 0x100000000\n"),
              HasSubstr("no number"));
  EXPECT_THAT(TextError(header + "Profiles:\n- Function Name: f\n  Funktion: 1\n"),
              HasSubstr("unexpected key in Funktion"));
  EXPECT_THAT(TextError(header + "Profiles:\n- Function Name: f\n  Function Signature: 0x1\n"),
              HasSubstr("not that of its name"));
  EXPECT_THAT(TextError(header + "Profiles:\n- Function Name: f\n  Call Edges: [{Weight: 1}]\n"),
              HasSubstr("reserves"));
  EXPECT_THAT(
      TextError(header + "Profiles:\n- Function Name: f\n  Basic Block Profiles: [{Offset: 0, Covered: true}]\n"),
      HasSubstr("first block"));
  EXPECT_THAT(TextError(header + "Profiles:\n- Function Name: \"a\\0b\"\n"), HasSubstr("NUL"));
  EXPECT_THAT(TextError(header + "Profiles: &a []\nMore: *a\n"), HasSubstr("alias"));
  EXPECT_THAT(TextError(header + "? [x]\n: 1\n"), HasSubstr("key that is no text"));
  EXPECT_THAT(TextError(header + "---\n" + header), HasSubstr("more than one document"));
  EXPECT_THAT(TextError("Header: {File Type: [.mipmap]}"), HasSubstr(".mipmap"));
  EXPECT_THAT(TextError("Header: {File Type: [.mip], Profile Type: [Block Coverage], Module Hash: 1}"),
              HasSubstr("Profile Type"));
  EXPECT_THAT(TextError("Header: {File Type: [.mip"), HasSubstr("line 2: the YAML text is damaged"));
  EXPECT_THAT(TextError("{\"Header\": 1}"), HasSubstr("unexpected value"));
  EXPECT_THAT(TextError("{\"Header\": {"), HasSubstr("JSON text is damaged at byte"));
  EXPECT_THAT(TextError(std::string(100'000, '{')), HasSubstr("damaged"));
  EXPECT_THAT(TextError("x: " + std::string(100'000, '[')), HasSubstr("unexpected list"));
}

TEST(MipHostileTest, DocumentsCutAtEveryByteGiveAnErrorOrFewerFunctions) {
  const MipProfile profile = MadeUpProfile({.functions = 3, .counted = true});
  std::string yaml, json;
  ASSERT_TRUE(WriteMipYaml(profile, {}, [&](absl::string_view piece) {
                yaml.append(piece.data(), piece.size());
                return absl::OkStatus();
              }).ok());
  ASSERT_TRUE(WriteMipJson(profile, {}, [&](absl::string_view piece) {
                json.append(piece.data(), piece.size());
                return absl::OkStatus();
              }).ok());
  for (size_t length = 0; length < yaml.size(); ++length) (void)ReadMipDocument(yaml.substr(0, length));
  for (size_t length = 0; length + 2 < json.size(); ++length)
    EXPECT_FALSE(ReadMipDocument(json.substr(0, length)).ok());
}

}  // namespace
}  // namespace clrsampler
