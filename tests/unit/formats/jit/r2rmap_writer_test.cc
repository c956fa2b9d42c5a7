#include "formats/jit/r2rmap_writer.h"

#include <gmock/gmock.h>

#include <string>

#include "absl/strings/string_view.h"

namespace clrsampler {
namespace {

TEST(R2rMapWriterTest, WhatIsReadIsWrittenByteForByte) {
  constexpr absl::string_view kText =
      "FFFFFFFF 00 D90D18AB0102030405060708090A0B0C\n"
      "FFFFFFFE 00 1\n"
      "FFFFFFFD 00 2\n"
      "FFFFFFFC 00 3\n"
      "FFFFFFFB 00 1\n"
      "00011470 05 System.String Address::get_Street()\n"
      "00011480 12345 A::B(C D)\n";
  const absl::StatusOr<R2rMap> map = ParseR2rMap(kText);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(WriteR2rMap(*map), kText);
}

TEST(R2rMapWriterTest, NamesThatWouldBreakTheFileAreLeftOut) {
  R2rMap map;
  map.header.version = kR2rMapVersion;
  const std::string long_name(kMaxR2rMapNameBytes + 1, 'n');
  for (const absl::string_view name :
       {absl::string_view("A::B()\n00000001 05 C::D()"), absl::string_view("A::\0()", 6), absl::string_view("A::B()\r"),
        absl::string_view(long_name), absl::string_view(), absl::string_view("A::Good()")}) {
    map.rows.push_back({16, 4, name});
  }
  const std::string written = WriteR2rMap(map);
  const absl::StatusOr<R2rMap> read = ParseR2rMap(written);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->rows.size(), 1u);
  EXPECT_EQ(read->rows[0].name, "A::Good()");
}

}  // namespace
}  // namespace clrsampler
