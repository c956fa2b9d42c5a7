#include "formats/jit/r2rmap_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;

constexpr char kHeader[] =
    "FFFFFFFF 00 D90D18AB0102030405060708090A0B0C\n"
    "FFFFFFFE 00 1\n"
    "FFFFFFFD 00 2\n"
    "FFFFFFFC 00 3\n"
    "FFFFFFFB 00 1\n";

std::string ErrorOf(absl::string_view text) {
  const absl::StatusOr<R2rMap> map = ParseR2rMap(text);
  return map.ok() ? "" : std::string(map.status().message());
}

TEST(R2rMapParserTest, ReadsHeaderAndRows) {
  const std::string text =
      absl::StrCat(kHeader, "00011470 05 System.String Address::get_Street()\n00011480 12345 A::B(C D)\n");
  const absl::StatusOr<R2rMap> map = ParseR2rMap(text);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(R2rMapSignatureText(map->header), "D90D18AB0102030405060708090A0B0C");
  EXPECT_EQ(map->header.signature[0], 0xd9);
  EXPECT_EQ(map->header.version, 1u);
  EXPECT_EQ(R2rMapOsText(map->header.os), "Linux");
  EXPECT_EQ(R2rMapArchitectureText(map->header.architecture), "X64");
  EXPECT_EQ(R2rMapAbiText(map->header.abi), "Default");
  ASSERT_EQ(map->rows.size(), 2u);
  EXPECT_EQ(map->rows[0].rva, 0x11470u);
  EXPECT_EQ(map->rows[0].length, 5u);
  EXPECT_EQ(map->rows[0].name, "System.String Address::get_Street()");
  EXPECT_EQ(map->rows[1].length, 0x12345u);
}

TEST(R2rMapParserTest, TakesCrlfAndLowerCase) {
  const std::string text =
      "ffffffff 00 d90d18ab0102030405060708090a0b0c\r\nfffffffe 00 1\r\nfffffffd 00 2\r\nfffffffc 00 2\r\nfffffffb 00 "
      "9\r\n"
      "10 ab x\r\n";
  const absl::StatusOr<R2rMap> map = ParseR2rMap(text);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(R2rMapArchitectureText(map->header.architecture), "ARM64");
  EXPECT_EQ(R2rMapAbiText(map->header.abi), "9");  // no word for it
  EXPECT_EQ(map->rows[0].name, "x");
}

TEST(R2rMapParserTest, AHeaderInAnotherOrderIsAnError) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf("FFFFFFFE 00 1\n"), HasSubstr("line 1"));
  EXPECT_THAT(ErrorOf("FFFFFFFF 00 D90D\nFFFFFFFE 00 1\n"), HasSubstr("signature"));
  EXPECT_THAT(ErrorOf("FFFFFFFF 01 D90D18AB0102030405060708090A0B0C\n"), HasSubstr("signature"));
  const std::string header(kHeader);
  for (size_t lines = 1; lines < 5; ++lines) {
    size_t end = 0;
    for (size_t i = 0; i < lines; ++i) end = header.find('\n', end) + 1;
    EXPECT_NE(ErrorOf(header.substr(0, end)), "") << lines;
    EXPECT_THAT(ErrorOf(header.substr(0, end) + "00011470 05 A::B()\n"), HasSubstr(absl::StrCat("line ", lines + 1)));
  }
}

TEST(R2rMapParserTest, AnotherVersionIsNotGuessedAt) {
  const absl::StatusOr<R2rMap> map = ParseR2rMap("FFFFFFFF 00 D90D18AB0102030405060708090A0B0C\nFFFFFFFE 00 2\n");
  EXPECT_EQ(map.status().code(), absl::StatusCode::kUnimplemented);
}

TEST(R2rMapParserTest, MoreRowsThanAreWantedAreAnError) {
  const std::string two = absl::StrCat(kHeader, "00011470 05 A::B()\n00011480 05 A::C()\n");
  EXPECT_TRUE(ParseR2rMap(two, 2).ok());
  const absl::Status refused = ParseR2rMap(two, 1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("line 7"));
}

TEST(R2rMapParserTest, TheHeaderIsReadWithoutTheRows) {
  const absl::StatusOr<R2rMapHeader> header = ParseR2rMapHeader(absl::StrCat(kHeader, "no row"));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(R2rMapSignatureText(*header), R2rMapSignatureText(ParseR2rMap(kHeader)->header));
}

// A damaged row could give its neighbour's address to a method, so the whole file is refused.
TEST(R2rMapParserTest, AnyDamagedRowIsAnError) {
  for (const absl::string_view row :
       {"00011470 05 A::B()", "\n", "00011470\n", "00011470 05\n", "00011470 05 \n", "123456789 05 A\n", "xyz 05 A\n",
        "00011470 -5 A\n", "FFFFFFFB 00 1\n", "FFFFFFFA 06 ends outside\n"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat(kHeader, "00011470 05 A::B()\n", row)), HasSubstr("line 7")) << row;
  }
  EXPECT_THAT(ErrorOf(absl::StrCat(kHeader, absl::string_view("10 1 a\0b\n", 9))), HasSubstr("zero byte"));
  EXPECT_NE(ErrorOf(absl::StrCat(kHeader, "10 1 ", std::string(kMaxR2rMapNameBytes + 1, 'x'), "\n")), "");
}

}  // namespace
}  // namespace clrsampler
