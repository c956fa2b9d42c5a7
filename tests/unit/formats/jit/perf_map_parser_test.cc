#include "formats/jit/perf_map_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/byte_reader.h"
#include "os/file_io.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Collected : public PerfMapSink {
 public:
  void OnLine(const PerfMapLine& line) override {
    lines.push_back(
        absl::StrCat(absl::Hex(line.start), "+", absl::Hex(line.size), " ", line.name, " @", line.name_offset));
  }
  std::vector<std::string> lines;
};

// Offers `file` as it would look when it ended at each of `ends`.
absl::Status FeedGrowing(absl::string_view file, const std::vector<size_t>& ends, PerfMapParser& parser,
                         Collected& seen) {
  for (const size_t end : ends) {
    const absl::StatusOr<size_t> used = parser.Feed(AsBytes(file.substr(parser.offset(), end - parser.offset())), seen);
    if (!used.ok()) return used.status();
  }
  return absl::OkStatus();
}

std::vector<std::string> Lines(absl::string_view file) {
  PerfMapParser parser;
  Collected seen;
  EXPECT_TRUE(FeedGrowing(file, {file.size()}, parser, seen).ok());
  return seen.lines;
}

TEST(PerfMapParserTest, TakesNumbersAsRuntimesWriteThem) {
  EXPECT_THAT(Lines("0x7fc49dc00420 1c void [a] Ns.A::M(int32, int32)[Tier]\n"),
              ElementsAre("7fc49dc00420+1c void [a] Ns.A::M(int32, int32)[Tier] @18"));
  EXPECT_THAT(Lines("00007F1484580018 AB upper\n"), ElementsAre("7f1484580018+ab upper @20"));
  EXPECT_THAT(Lines("7f00 0x10 node\n"), ElementsAre("7f00+10 node @10"));
  EXPECT_THAT(Lines("ffffffffffffffff 0 top\n"), ElementsAre("ffffffffffffffff+0 top @19"));
}

TEST(PerfMapParserTest, CutsNamesAtNulAndCarriageReturn) {
  EXPECT_THAT(Lines(absl::string_view("10 1 one\0two\n20 1 x\r\n", 21)), ElementsAre("10+1 one @5", "20+1 x @18"));
}

TEST(PerfMapParserTest, CountsWhatIsNoLineAndGoesOn) {
  const std::string file = absl::StrCat("\n", "10\n", "10 20\n", "10 20 \n", "zz 20 name\n", "10  20 name\n",
                                        "11112222333344445 1 too long\n", absl::string_view("10\0 20 name\n", 12),
                                        "0x 1 name\n", "-1 1 name\n", "30 1 good\n");
  PerfMapParser parser;
  Collected seen;
  ASSERT_TRUE(FeedGrowing(file, {file.size()}, parser, seen).ok());
  EXPECT_EQ(seen.lines.size(), 1u);
  EXPECT_EQ(parser.counters().lines, 1u);
  EXPECT_EQ(parser.counters().bad_lines, 10u);
}

TEST(PerfMapParserTest, WhereReadingStoppedDoesNotMatter) {
  const std::string file = "0x10 1 one\r\nbad\n20 2 two words\n30 3 three\n";
  const std::vector<std::string> whole = Lines(file);
  ASSERT_EQ(whole.size(), 3u);
  for (size_t first = 0; first <= file.size(); ++first) {
    for (size_t second = first; second <= file.size(); ++second) {
      PerfMapParser parser;
      Collected seen;
      ASSERT_TRUE(FeedGrowing(file, {first, second, file.size()}, parser, seen).ok());
      EXPECT_EQ(seen.lines, whole) << first << " " << second;
      EXPECT_EQ(parser.counters().bad_lines, 1u);
    }
  }
}

TEST(PerfMapParserTest, KeepsAHalfLineForLater) {
  EXPECT_THAT(Lines("10 1 one\n20 1 tw"), ElementsAre("10+1 one @5"));
  EXPECT_THAT(Lines("10 1 one"), IsEmpty());
}

// A line as .NET 8 to 10 write it: as many bytes as it has UTF-16 units.
std::string CutLine(absl::string_view head, absl::string_view name) {
  const std::string line = absl::StrCat(head, name, "\n");
  size_t units = 0;
  for (const char c : line) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if ((byte & 0xc0) != 0x80) units += byte >= 0xf0 ? 2 : 1;
  }
  return line.substr(0, units);
}

TEST(PerfMapParserTest, ParsesGluedLinesApart) {
  const std::string file =
      absl::StrCat(CutLine("0x7f5b7988b980 1a ", "int32 [Odd] A::\u00fcn\u00ef(int32)[QuickJitted]"),
                   CutLine("0x7f5b7988b9c0 1b ", "void [Odd] A::\u540d\u524d()[Tier0]"),
                   CutLine("0x7f5b7988ba00 1c ", "void [Odd] A::\U0001f600"),
                   "0x7f5b7988ba40 1d void [Odd] A::Plain()[Tier0]\n", "0x7f5b7988ba80 1e void [Odd] A::\u00fc(\n");
  const std::vector<std::string> expected = {
      "7f5b7988b980+1a int32 [Odd] A::\u00fcn\u00ef(int32)[QuickJitted @18",
      "7f5b7988b9c0+1b void [Odd] A::\u540d\u524d()[Tie @75",
      "7f5b7988ba00+1c void [Odd] A::\xf0\x9f\x98 @119",
      "7f5b7988ba40+1d void [Odd] A::Plain()[Tier0] @154",
      "7f5b7988ba80+1e void [Odd] A::\u00fc( @201",
  };
  for (size_t first = 0; first <= file.size(); ++first) {
    PerfMapParser parser;
    Collected seen;
    ASSERT_TRUE(FeedGrowing(file, {first, file.size()}, parser, seen).ok());
    ASSERT_EQ(seen.lines, expected) << first;
    EXPECT_EQ(parser.counters().lines, 5u);
    EXPECT_EQ(parser.counters().bad_lines, 0u);
    EXPECT_EQ(parser.counters().glued_lines, 3u);
    EXPECT_TRUE(parser.at_line_start());
  }
}

TEST(PerfMapParserTest, FindsGluedNamesAgain) {
  bool ended = false;
  EXPECT_EQ(PerfMapParser::NameAt("A::\u00fc(int32)[Quick0x7f5b7988b9c0 1a int32", ended), "A::\u00fc(int32)[Quick");
  EXPECT_TRUE(ended) << "no end of line is needed";
  EXPECT_EQ(PerfMapParser::NameAt("A::\u00fc0x7f5b7988b9c0 1a B::\u00fc0x7f5b7988b9d0 1a C\n", ended), "A::\u00fc");
  EXPECT_EQ(PerfMapParser::NameAt("A::\u00fc(int32)[Quick0x7f5b7988b9c0 1a", ended),
            "A::\u00fc(int32)[Quick0x7f5b7988b9c0 1a");
  EXPECT_FALSE(ended);
}

TEST(PerfMapParserTest, ParsesOnlyGluedLinesApart) {
  // ASCII, however much it looks like one.
  EXPECT_EQ(Lines("10 1 one0x7f5b7988b9c0 1a int32\n").size(), 1u);
  // The byte stands behind it, so nothing was lost before it.
  EXPECT_EQ(Lines("10 1 one0x7f5b7988b9c0 1a \u00fc\n").size(), 1u);
  for (const absl::string_view no_line : {"0x7f5b7 1a x", "0x7f5b7988b9c07f5b7 1a x", "0x7f5b7988b9c0 123456789 x",
                                          "0x7f5b7988b9c0  x", "0x7f5b7988b9c0-1a x", "7f5b7988b9c0 1a x"}) {
    EXPECT_EQ(Lines(absl::StrCat("10 1 \u00fc", no_line, "\n")).size(), 1u) << no_line;
  }
  EXPECT_EQ(Lines("10 1 \u00fc0x0x7f5b79 12345678 x\n").size(), 2u);
  // A line of another kind on the next row does not count as glued.
  EXPECT_EQ(Lines("10 1 \u00fc\n20 1 one0x7f5b7988b9c0 1a int32\n").size(), 2u);
}

TEST(PerfMapParserTest, TakesALineWithoutAnEndOnlyWhenItIsNotAscii) {
  for (const absl::string_view kept : {"", "10 1", "10 1 ", "10 1 one", "zz 1 \u00fc", "10 1 \u00fc\n"}) {
    PerfMapParser parser;
    Collected seen;
    EXPECT_FALSE(parser.TakeUnended(AsBytes(kept), seen)) << kept;
    EXPECT_EQ(parser.offset(), 0u);
  }
  const std::string file = "10 1 one\n20 2 \u00fc[Ti0x7f5b7988b9c0 1a next\n";
  PerfMapParser parser;
  Collected seen;
  ASSERT_TRUE(FeedGrowing(file, {18}, parser, seen).ok());
  ASSERT_TRUE(parser.TakeUnended(AsBytes(absl::string_view(file).substr(9, 10)), seen));
  EXPECT_FALSE(parser.at_line_start());
  ASSERT_TRUE(FeedGrowing(file, {file.size()}, parser, seen).ok());
  EXPECT_THAT(seen.lines, ElementsAre("10+1 one @5", "20+2 \u00fc[Ti @14", "7f5b7988b9c0+1a next @37"));
  EXPECT_EQ(parser.counters().glued_lines, 1u);
}

TEST(PerfMapParserTest, AChainOfGluedLinesHasNoLimit) {
  std::string file;
  const size_t lines = 2 * PerfMapParser::kMaxLineBytes / 20;
  for (size_t i = 0; i < lines; ++i) absl::StrAppend(&file, "0x7f5b7988b9c0 1 \u00fc\u00fc");
  file += '\n';
  EXPECT_EQ(Lines(file).size(), lines);
}

TEST(PerfMapParserTest, TakesLongNamesAndCountsEndlessOnes) {
  const std::string name(PerfMapParser::kMaxLineBytes - 5, 'n');
  EXPECT_EQ(Lines(absl::StrCat("10 1 ", name, "\n")).size(), 1u);
  const std::string file = absl::StrCat("10 1 ", name, "n\n20 1 x\n");
  PerfMapParser whole;
  Collected seen;
  ASSERT_TRUE(FeedGrowing(file, {file.size()}, whole, seen).ok());
  EXPECT_EQ(seen.lines.size(), 1u);
  EXPECT_EQ(whole.counters().long_lines, 1u);
  // The same when the end of the line comes after it was given up.
  const std::string longer = absl::StrCat("10 1 ", name, name, name, "\n20 1 x\n");
  PerfMapParser parts;
  Collected seen_in_parts;
  ASSERT_TRUE(FeedGrowing(longer, {size_t{3} << 19, size_t{5} << 19, longer.size()}, parts, seen_in_parts).ok());
  EXPECT_EQ(seen_in_parts.lines.size(), 1u);
  EXPECT_EQ(parts.counters().long_lines, 1u);
}

TEST(PerfMapParserTest, GivesUpOnASparseFile) {
  const std::vector<std::byte> zeroes(2 << 20);
  PerfMapParser parser;
  Collected seen;
  absl::Status status;
  int turns = 0;
  while (status.ok() && turns < 100) {
    status = parser.Feed(zeroes, seen).status();
    ++turns;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(turns, 9);  // 16 MiB and one read
  EXPECT_EQ(parser.Feed(AsBytes("10 1 x\n"), seen).status(), status);
}

class RealPerfMapTest : public testing::TestWithParam<const char*> {};

// A second, slow reading of the same text: split at spaces, numbers by strtoull.
TEST_P(RealPerfMapTest, ReadsEveryLine) {
  const absl::StatusOr<std::string> map =
      ReadWholeFile(absl::StrCat(TestData("perfmap/net"), GetParam(), ".map"), 1 << 20);
  ASSERT_TRUE(map.ok());
  std::vector<std::string> expected;
  size_t offset = 0;
  for (const absl::string_view line : absl::StrSplit(*map, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    expected.push_back(absl::StrCat(absl::Hex(std::strtoull(fields[0].c_str(), nullptr, 16)), "+",
                                    absl::Hex(std::strtoull(fields[1].c_str(), nullptr, 16)), " ", fields[2], " @",
                                    offset + line.size() - fields[2].size()));
    offset += line.size() + 1;
  }
  ASSERT_GT(expected.size(), 40u);
  EXPECT_EQ(Lines(*map), expected);
}
INSTANTIATE_TEST_SUITE_P(Runtimes, RealPerfMapTest, testing::Values("8.0.30", "9.0.19", "10.0.14"));

}  // namespace
}  // namespace clrsampler
