// The decoded example of docs/mip.md: two functions, coverage, built here from its numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "formats/byte_reader.h"
#include "formats/mip/mip_document.h"
#include "formats/mip/mip_map.h"
#include "formats/mip/mip_merge.h"
#include "formats/mip/mip_order.h"
#include "formats/mip/mip_reader.h"
#include "formats/mip/mip_writer.h"
#include "status/status.h"
#include "unit/formats/mip/made_up_mip.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;

// Bytes as the format's text lists them, not as the library writes them.
class Bytes {
 public:
  Bytes& U8(uint8_t value) { return Put(value); }
  Bytes& U16(uint16_t value) { return Put(value); }
  Bytes& U32(uint32_t value) { return Put(value); }
  Bytes& U64(uint64_t value) { return Put(value); }
  Bytes& Text(absl::string_view text) {
    text_.append(text.data(), text.size());
    return *this;
  }
  Bytes& PadTo(size_t alignment) {
    while (text_.size() % alignment != 0) text_.push_back('\0');
    return *this;
  }
  Bytes& Header(uint16_t type, uint32_t kinds, int64_t raw_section = 0) {
    return Text("\xFBMIP")
        .U16(8)
        .U16(type)
        .U32(kinds)
        .U32(0xDEADBEEF)
        .U64(static_cast<uint64_t>(raw_section))
        .U32(0)
        .U32(0x20);
  }
  const std::string& text() const { return text_; }
  std::span<const std::byte> span() const { return AsBytes(text_); }

 private:
  template <typename T>
  Bytes& Put(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  std::string text_;
};

Bytes ExampleMap() {
  Bytes map;
  map.Header(0x14, 1, -0x160);
  map.U64(-0x160).U64(-0x80).U32(0x10).U32(0xE7715).U32(1).U32(4).U32(3).Text("foo").PadTo(8);
  map.U64(-0x187).U64(-0x98).U32(0x30).U32(0x1111).U32(0).U32(4).Text("main");
  return map;
}
Bytes ExampleRaw() {
  Bytes raw;
  raw.Header(0x11, 1).U8(0x00).U8(0xFF);
  return raw;
}

MipProfile ExampleProfile() {
  absl::StatusOr<MipMap> map = ReadMipMap(ExampleMap().span());
  EXPECT_TRUE(map.ok()) << map.status();
  return map->profile;
}

TEST(MipExampleTest, MapIsDecodedValueForValue) {
  const Bytes bytes = ExampleMap();
  ASSERT_EQ(bytes.text().size(), 108u);
  const MipProfile profile = ExampleProfile();
  EXPECT_EQ(profile.kinds, kMipFunctionCoverage);
  EXPECT_EQ(profile.module_hash, 0xDEADBEEF);
  ASSERT_EQ(profile.functions.size(), 2u);
  const MipFunction &foo = profile.functions[0], &main = profile.functions[1];
  EXPECT_EQ(profile.NameOf(foo), "foo");
  EXPECT_EQ(foo.signature, 0x5CF8C24CDB18BDACu);
  EXPECT_EQ(foo.raw_offset, 0x20u);
  EXPECT_EQ(foo.start_offset, 0x100);
  EXPECT_EQ(foo.size, 0x10u);
  EXPECT_EQ(foo.cfg_signature, 0xE7715u);
  EXPECT_THAT(profile.OffsetsOf(foo), ElementsAre(4u));
  EXPECT_EQ(profile.NameOf(main), "main");
  EXPECT_EQ(main.signature, 0xDB956436E78DD5FAu);
  EXPECT_EQ(main.raw_offset, 0x21u);
  EXPECT_EQ(main.start_offset, 0x110);
  EXPECT_EQ(main.size, 0x30u);
  EXPECT_EQ(main.cfg_signature, 0x1111u);
  EXPECT_EQ(main.block_count, 0u);
}

TEST(MipExampleTest, MapIsWrittenByteForByte) {
  const absl::StatusOr<std::string> written = MipMapBytes(ExampleProfile(), {.raw_section_offset = -0x160});
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(*written, ExampleMap().text());
}

TEST(MipExampleTest, RawIsWrittenByteForByte) {
  MipRawWriter writer({.kinds = kMipFunctionCoverage, .module_hash = 0xDEADBEEF});
  EXPECT_EQ(writer.Add({.ran = true}), 0x20u);
  EXPECT_EQ(writer.Add({.ran = false}), 0x21u);
  EXPECT_EQ(writer.bytes(), ExampleRaw().text());
}

TEST(MipExampleTest, MergedProfileHasTheBytesOfTheText) {
  MipProfile profile = ExampleProfile();
  ASSERT_TRUE(MipRawMerger(profile, true).Merge(ExampleRaw().span()).ok());
  Bytes expected;
  expected.Header(0x8, 1).U64(2);
  expected.U64(0x5CF8C24CDB18BDACu).U32(0x20).U32(0x100).U32(0x10).U32(0xE7715).U32(1).U32(1).U64(1).U64(0);
  expected.U32(4).U8(0).U32(0);
  expected.U64(0xDB956436E78DD5FAu).U32(0x21).U32(0x110).U32(0x30).U32(0x1111).U32(0).U32(0).U64(0).U64(0).U32(0);
  expected.U64(9).Text(absl::string_view("foo\0main\0", 9));
  EXPECT_EQ(*MipBytes(profile), expected.text());
  EXPECT_EQ(MipFunctionOrder(profile), std::vector<uint32_t>{0});
  const MipTotals totals = TotalsOf(profile);
  EXPECT_EQ(totals.raw_profiles, 1u);
  EXPECT_EQ(totals.functions, 2u);
  EXPECT_EQ(totals.functions_ran, 1u);
  EXPECT_EQ(totals.blocks, 3u);
  EXPECT_EQ(totals.blocks_ran, 1u);
}

// The same in the layout that the format's first tool wrote.
TEST(MipExampleTest, LlvmLayoutIsReadAndWritten) {
  Bytes expected;
  expected.Header(0x8, 1).U64(2);
  expected.U64(0x5CF8C24CDB18BDACu).U64(0x20).U64(0x100).U32(0x10).U32(0xE7715).U32(1).U32(1).U64(1).U64(0);
  expected.U32(4).U8(0).U32(0);
  expected.U64(0xDB956436E78DD5FAu).U64(0x21).U64(0x110).U32(0x30).U32(0x1111).U32(0).U32(0).U64(0).U64(0).U32(0);
  expected.U64(2).Text(absl::string_view("foo\0main\0", 9));
  const absl::StatusOr<MipProfile> profile = ReadMip(expected.span());
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->layout, MipLayout::kLlvm);
  MipProfile same = ExampleProfile();
  ASSERT_TRUE(MipRawMerger(same, true).Merge(ExampleRaw().span()).ok());
  EXPECT_EQ(test_support::Contents(*profile), test_support::Contents(same));
  EXPECT_EQ(*MipBytes(*profile, MipLayout::kLlvm), expected.text());
}

// The layout before, with headers of 24 bytes and FileTypes 1, 2, 3.
TEST(MipExampleTest, OldLayoutIsRead) {
  const auto header = [](uint16_t type) {
    Bytes bytes;
    bytes.Text("\xFBMIP").U16(7).U16(type).U32(1).U32(0xDEADBEEF).U32(0).U32(0x18);
    return bytes;
  };
  // The raw section lies at 0x4000, foo at 0x1100, main at 0x1110, the map nowhere.
  Bytes map = header(2);
  const auto section = [&] { return static_cast<uint32_t>(0x4000 - map.text().size()); };
  uint32_t at = section();
  map.U32(at).U32(at + 0x18).U32(at - 0x2F00).U32(0x10).U32(0xE7715).U32(1).U32(4).U32(3).Text("foo").PadTo(8);
  at = section();
  map.U32(at).U32(at + 0x19).U32(at - 0x2EF0).U32(0x30).U32(0x1111).U32(0).U32(4).Text("main").PadTo(8);
  absl::StatusOr<MipMap> read = ReadMipMap(map.span());
  ASSERT_TRUE(read.ok()) << read.status();
  MipProfile& profile = read->profile;
  EXPECT_EQ(profile.layout, MipLayout::kOld);
  EXPECT_EQ(profile.version, 7);
  EXPECT_THAT(test_support::Contents(profile),
              ElementsAre("kinds 1 module 3735928559",
                          "foo 6699318081062747564 raw 24 at -12032 size 16 cfg 947989 merged 0 calls 0 order 0 4-",
                          "main 15822663052811949562 raw 25 at -12016 size 48 cfg 4369 merged 0 calls 0 order 0"));
  Bytes raw = header(1);
  raw.U8(0xFF).U8(0x00);
  ASSERT_TRUE(MipRawMerger(profile, true).Merge(raw.span()).ok());
  EXPECT_EQ(profile.functions[0].merge_count, 0u);
  EXPECT_EQ(profile.functions[1].merge_count, 1u);

  Bytes mip = header(3);
  mip.U64(1).U64(0xDB956436E78DD5FAu).U32(0x19).U32(-0x2EF0).U32(0x30).U32(0x1111).U32(0).U32(1).U64(1).U64(0).U32(0);
  mip.U64(1).Text(absl::string_view("main\0", 5));
  const absl::StatusOr<MipProfile> old = ReadMip(mip.span());
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(old->layout, MipLayout::kOld);
  EXPECT_EQ(test_support::Contents(*old)[1], test_support::Contents(profile)[2]);
}

// Maps of 32-bit programs: PC offsets of 4 bytes, entries at multiples of 4.
TEST(MipExampleTest, MapOf32BitsIsRead) {
  Bytes map;
  map.Header(0x24, 1, 0xFFFFFEA0);  // -0x160 in 4 bytes, and 4 bytes of zero
  map.U32(-0x160).U32(-0x80).U32(0x10).U32(0xE7715).U32(1).U32(4).U32(3).Text("foo").PadTo(4);
  ASSERT_EQ(map.text().size(), 0x40u);
  map.U32(-0x160 - 0x20 + 1).U32(-0x80 - 0x20 + 0x10).U32(0x30).U32(0x1111).U32(0).U32(4).Text("main");
  const absl::StatusOr<MipMap> read = ReadMipMap(map.span());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(test_support::Contents(read->profile), test_support::Contents(ExampleProfile()));
}

TEST(MipExampleTest, YamlHasTheKeysOfTheFirstTool) {
  MipProfile profile = ExampleProfile();
  ASSERT_TRUE(MipRawMerger(profile, true).Merge(ExampleRaw().span()).ok());
  std::string yaml;
  ASSERT_TRUE(WriteMipYaml(profile, {.keep = [](const MipFunction& function) { return function.ran(); }},
                           [&](absl::string_view piece) {
                             yaml.append(piece.data(), piece.size());
                             return absl::OkStatus();
                           })
                  .ok());
  EXPECT_EQ(yaml,
            "---\nHeader:\n  File Type: [.mip]\n  Profile Type: [Function Coverage]\n  Module Hash: 0xDEADBEEF\n"
            "Profiles:\n- Function Name: foo\n  Function Signature: 0x5CF8C24CDB18BDAC\n"
            "  Raw Profile Data Address: 0x20\n  Encoded Function Address: 0x100\n  Function Size: 0x10\n"
            "  Control Flow Graph Signature: 0xE7715\n  Raw Profile Count: 1\n  Function Call Count: 1\n"
            "  Function Order Sum: 0\n  Basic Block Profiles:\n  - Offset: 0x0\n    Covered: true\n"
            "  - Offset: 0x4\n    Covered: false\n  Call Edges: []\n");
}

// As the first tool writes it: other indentation, and the end of the document marked.
TEST(MipExampleTest, YamlOfTheFirstToolIsRead) {
  const absl::StatusOr<MipProfile> profile = ReadMipDocument(
      "---\nHeader:\n  File Type:       [ .mip ]\n  Profile Type:    [ Function Coverage, Block Coverage ]\n"
      "  Module Hash:     0xDEADBEEF\nProfiles:\n  - Function Name:   main\n"
      "    Function Signature: 0xDB956436E78DD5FA\n    Raw Profile Data Address: 0x21\n"
      "    Encoded Function Address: 0xFFFFFFFFFFFFFF00\n    Function Size:   0x30\n"
      "    Control Flow Graph Signature: 0x1111\n    Raw Profile Count: 2\n    Function Call Count: 1\n"
      "    Function Order Sum: 0\n    Basic Block Profiles:\n      - Offset:          0x0\n"
      "        Covered:         true\n      - Offset:          0xC\n        Covered:         true\n"
      "    Call Edges:      []\n...\n");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(test_support::Contents(*profile),
              ElementsAre("kinds 3 module 3735928559",
                          "main 15822663052811949562 raw 33 at -256 size 48 cfg 4369 merged 2 calls 1 order 0 12+"));
}

}  // namespace
}  // namespace clrsampler
