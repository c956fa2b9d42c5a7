#include "formats/jit/jitdump_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/jit/jitdump_writer.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/formats/jit/collected_jitdump.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::byte> Code(size_t bytes) { return std::vector<std::byte>(bytes, std::byte{0xcc}); }

JitdumpWriter Begun(bool big_endian = false) {
  JitdumpWriter writer(big_endian);
  writer.Header({.version = 1, .elf_machine = 62, .pid = 42, .timestamp = 7});
  return writer;
}

std::string AllKinds(bool big_endian, absl::string_view extension = "") {
  JitdumpWriter writer(big_endian);
  writer.Header({.version = 1, .elf_machine = 183, .pid = 42, .timestamp = 7}, extension);
  const std::vector<JitdumpDebugEntry> lines = {
      {0x1000, 10, 1, "a.cs"}, {0x1004, 11, 0, "\xff"}, {0x1008, 2, 0, "b.cs"}};
  writer.DebugInfo({.timestamp = 8, .code_address = 0x1000, .announced_entries = 3, .entries = lines});
  writer.Unwinding(9, 4, 0, Code(12));
  writer.Load("Ns.A::One()", 10, 0x1000, Code(64));
  writer.Unknown(77, 11, Code(5));
  writer.Move({.timestamp = 12,
               .pid = 42,
               .tid = 43,
               .vma = 0x3000,
               .old_code_address = 0x1000,
               .new_code_address = 0x3000,
               .code_size = 64,
               .code_index = 1});
  writer.Close(13);
  return writer.TakeBytes();
}

// Writes `value` over the 32 bits at `offset`.
std::string Patched(std::string file, size_t offset, uint32_t value) {
  file.replace(offset, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
  return file;
}

TEST(JitdumpParserTest, ReadsEveryKindOfRecordInBothByteOrders) {
  for (const bool big_endian : {false, true}) {
    CollectedJitdump seen;
    ASSERT_TRUE(FeedAll(AllKinds(big_endian), seen).ok());
    EXPECT_THAT(seen.log, ElementsAre(absl::StrCat("header 1 40 183 pid 42 at 7", big_endian ? " big" : ""),
                                      "debug 8 4096 of 3 [4096 10 1 a.cs] [4100 11 0 a.cs] [4104 2 0 b.cs]",
                                      "unwinding 9 12 4 0 data@172+12",
                                      "load 10 1000 40 Ns.A::One() vma 4096 pid 42 tid 42 index 1 name@240 body@252+64",
                                      "unknown 77 21", "move 12 42 43 12288 4096 12288 64 1", "close 13"));
  }
}

TEST(JitdumpParserTest, StepsOverALongerHeader) {
  CollectedJitdump seen;
  ASSERT_TRUE(FeedAll(AllKinds(false, std::string(100, 'x')), seen).ok());
  EXPECT_THAT(seen.names, ElementsAre("Ns.A::One()"));
  EXPECT_THAT(seen.log[0], HasSubstr("header 1 140"));
}

TEST(JitdumpParserTest, WhereReadingStoppedDoesNotMatter) {
  for (const bool big_endian : {false, true}) {
    const std::string file = AllKinds(big_endian, "extension");
    CollectedJitdump whole;
    ASSERT_TRUE(FeedAll(file, whole).ok());
    for (size_t first = 0; first <= file.size(); ++first) {
      for (const size_t second : {first, (first + file.size()) / 2}) {
        CollectedJitdump parts;
        ASSERT_TRUE(FeedGrowing(file, {first, second, file.size()}, parts).ok());
        ASSERT_EQ(parts.log, whole.log) << first << " " << second;
      }
    }
  }
}

TEST(JitdumpParserTest, KeepsMethodsBeforeATornTail) {
  JitdumpWriter writer = Begun();
  writer.Load("Ns.A::One()", 8, 0x1000, Code(64));
  const size_t whole = writer.bytes().size();
  writer.Load("Ns.A::Two()", 9, 0x2000, Code(64));
  const std::string file = writer.TakeBytes();
  CollectedJitdump cut_in_name;
  EXPECT_TRUE(FeedAll(file.substr(0, whole + 60), cut_in_name).ok());
  EXPECT_THAT(cut_in_name.names, ElementsAre("Ns.A::One()"));
  // The code is not ours to read: a record that has its name is told even when its code never comes.
  CollectedJitdump cut_in_code;
  EXPECT_TRUE(FeedAll(file.substr(0, file.size() - 30), cut_in_code).ok());
  EXPECT_THAT(cut_in_code.names, ElementsAre("Ns.A::One()", "Ns.A::Two()"));
}

TEST(JitdumpParserTest, SkipsCodeThatIsNotThereYet) {
  JitdumpWriter writer = Begun();
  writer.Load("Big", 8, 0x1000, Code(100'000));
  CollectedJitdump seen;
  JitdumpParser parser;
  const absl::StatusOr<FeedResult> fed = parser.Feed(AsBytes(absl::string_view(writer.bytes()).substr(0, 1'100)), seen);
  ASSERT_TRUE(fed.ok());
  EXPECT_EQ(fed->used, 1'100u);
  EXPECT_EQ(fed->skip, writer.bytes().size() - 1'100);
  EXPECT_EQ(parser.offset(), writer.bytes().size());
}

// Since dotnet/runtime#122274 the records of stub blocks announce code that they do not carry.
TEST(JitdumpParserTest, TakesTheBodyFromTheRecordAndNotFromTheCodeSize) {
  JitdumpWriter writer = Begun();
  JitdumpLoad block;
  block.name = "stub ReportStubBlock<Unknown>";
  block.code_size = 0x10000;
  writer.Load(block, {});
  block.name = "more after the code";
  block.code_size = 4;
  writer.Load(block, Code(32));
  writer.Load("Ns.A::One()", 9, 0x1000, Code(8));
  CollectedJitdump seen;
  ASSERT_TRUE(FeedAll(writer.bytes(), seen).ok());
  EXPECT_THAT(seen.names, ElementsAre("stub ReportStubBlock<Unknown>", "more after the code", "Ns.A::One()"));
}

TEST(JitdumpParserTest, RefusesHostileSizesForGood) {
  JitdumpWriter writer = Begun();
  writer.Load("Ns.A::One()", 8, 0x1000, Code(64));
  const size_t second = writer.bytes().size();
  writer.Load("Ns.A::Two()", 9, 0x2000, Code(64));
  for (const uint32_t size :
       {0u, 1u, 15u, 16u, 56u, 0x80000000u, 0xfffffff0u, 0xffffffffu, JitdumpParser::kMaxRecordBytes + 1}) {
    const std::string file = Patched(writer.bytes(), second + 4, size);
    CollectedJitdump seen;
    JitdumpParser parser;
    const absl::StatusOr<FeedResult> fed = parser.Feed(AsBytes(file), seen);
    ASSERT_FALSE(fed.ok()) << size;
    EXPECT_EQ(fed.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(fed.status().message()), HasSubstr(absl::StrCat("offset ", second)));
    EXPECT_THAT(seen.names, ElementsAre("Ns.A::One()"));
    EXPECT_EQ(parser.Feed({}, seen).status(), fed.status());
  }
}

TEST(JitdumpParserTest, RefusesANameThatRunsOutOfItsRecord) {
  JitdumpWriter writer = Begun();
  writer.Load("Ns.A::One()", 8, 0x1000, {});
  std::string file = writer.TakeBytes();
  file.back() = 'x';  // the NUL
  CollectedJitdump seen;
  EXPECT_FALSE(FeedAll(file + std::string(100, '\0'), seen).ok());
  EXPECT_THAT(seen.names, IsEmpty());
}

TEST(JitdumpParserTest, BoundsTheLengthOfNames) {
  for (const size_t over : {size_t{0}, size_t{1}}) {
    JitdumpWriter writer = Begun();
    writer.Load(std::string(JitdumpParser::kMaxNameBytes + over, 'n'), 8, 0x1000, Code(4));
    CollectedJitdump seen;
    EXPECT_EQ(FeedAll(writer.bytes(), seen).ok(), over == 0);
    EXPECT_EQ(seen.names.size(), over == 0 ? 1u : 0u);
  }
}

TEST(JitdumpParserTest, DoesNotTrustTheCountOfDebugEntries) {
  JitdumpWriter writer = Begun();
  const std::vector<JitdumpDebugEntry> lines = {{0x1000, 10, 1, "a.cs"}};
  writer.DebugInfo({.timestamp = 8, .code_address = 0x1000, .announced_entries = UINT64_MAX, .entries = lines});
  writer.Load("Ns.A::One()", 10, 0x1000, Code(64));
  CollectedJitdump seen;
  ASSERT_TRUE(FeedAll(writer.bytes(), seen).ok());
  EXPECT_THAT(seen.log[1], "debug 8 4096 of 18446744073709551615 [4096 10 1 a.cs]");
  EXPECT_THAT(seen.names, ElementsAre("Ns.A::One()"));
  CollectedJitdump without(/*debug_info=*/false);
  ASSERT_TRUE(FeedAll(writer.bytes(), without).ok());
  EXPECT_THAT(without.names, ElementsAre("Ns.A::One()"));
}

TEST(JitdumpParserTest, JudgesTheHeader) {
  const std::string good = AllKinds(false);
  CollectedJitdump seen;
  EXPECT_FALSE(FeedAll(std::string(1 << 20, '\0'), seen).ok()) << "a sparse file";
  EXPECT_FALSE(FeedAll("perf-map text", seen).ok());
  EXPECT_FALSE(FeedAll(Patched(good, 4, 2), seen).ok()) << "version";
  EXPECT_FALSE(FeedAll(Patched(good, 8, 39), seen).ok()) << "header size";
  EXPECT_FALSE(FeedAll(Patched(good, 8, 0xffffffff), seen).ok()) << "header size";
  EXPECT_FALSE(FeedAll(Patched(good, 32, 2), seen).ok()) << "unknown flag";
  EXPECT_FALSE(FeedAll(Patched(good, 36, 1), seen).ok()) << "unknown flag";
  EXPECT_THAT(seen.log, IsEmpty());
  EXPECT_TRUE(FeedAll(Patched(good, 32, 1), seen).ok());
  EXPECT_THAT(seen.log[0], HasSubstr(" arch"));
}

class RealJitdumpTest : public testing::TestWithParam<const char*> {};

TEST_P(RealJitdumpTest, ReadsAsPythonReadsIt) {
  const std::string base = absl::StrCat(TestData("jitdump/net"), GetParam());
  const absl::StatusOr<std::string> dump = ReadWholeFile(base + ".dump", 1 << 20);
  const absl::StatusOr<std::string> expected = ReadWholeFile(base + ".expected", 1 << 20);
  ASSERT_TRUE(dump.ok() && expected.ok());
  CollectedJitdump seen;
  ASSERT_TRUE(FeedAll(*dump, seen).ok());
  std::vector<std::string> lines = absl::StrSplit(*expected, '\n');
  lines.pop_back();
  EXPECT_EQ(seen.loads, lines);
}
INSTANTIATE_TEST_SUITE_P(Runtimes, RealJitdumpTest, testing::Values("8.0.30", "9.0.19", "10.0.14"));

TEST(JitdumpParserTest, ReadsTheFileThatTheDefectOfNet10Leaves) {
  const absl::StatusOr<std::string> dump = ReadWholeFile(TestData("jitdump/net10.0.12-dead.dump"), 1 << 20);
  ASSERT_TRUE(dump.ok());
  CollectedJitdump seen;
  JitdumpParser parser;
  const absl::StatusOr<FeedResult> fed = parser.Feed(AsBytes(*dump), seen);
  ASSERT_TRUE(fed.ok());
  EXPECT_EQ(fed->used, dump->size());
  EXPECT_GT(fed->skip, 0u);  // the rest of a stub block that was never written
  ASSERT_EQ(seen.names.size(), 2u);
  EXPECT_THAT(seen.names[0], testing::StartsWith("stub "));
  EXPECT_THAT(seen.names[1], testing::StartsWith("stub "));
}

}  // namespace
}  // namespace clrsampler
