#include "formats/nettrace/nettrace_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/formats/nettrace/collected_events.h"
#include "unit/formats/nettrace/nettrace_writer.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

absl::Status Read(absl::string_view bytes, CollectedEvents& out, size_t piece = SIZE_MAX) {
  NettraceReader reader(out);
  for (size_t at = 0; at < bytes.size(); at += std::min(piece, bytes.size() - at)) {
    if (absl::Status status = reader.Feed(AsBytes(bytes.substr(at, piece))); !status.ok()) return status;
  }
  return reader.Finish();
}

absl::Status Read(absl::string_view bytes) {
  CollectedEvents nothing;
  return Read(bytes, nothing);
}

std::string Line(const CollectedEvent& one) {
  const NettraceEvent& event = one.event;
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(one.payload.data()), static_cast<uInt>(one.payload.size()));
  return absl::StrCat(event.ticks, " ", event.thread, " ", event.capture_thread, " ", event.sequence, " ",
                      event.metadata->event_id, " ", event.metadata->version, " ", one.stack.size(), " ",
                      one.payload.size(), " ", crc);
}

class RealStreamTest : public testing::TestWithParam<std::string> {
 protected:
  std::string File(absl::string_view ending) const {
    return *ReadWholeFile(TestData(absl::StrCat("nettrace/", GetParam(), ending)), 1 << 20);
  }
};

TEST_P(RealStreamTest, HasTheRecordsThatAnotherReaderSees) {
  const std::string stream = File(".nettrace");
  const std::string expected = File(".expected");
  for (const size_t piece : {SIZE_MAX, size_t{1}, size_t{1000}}) {
    CollectedEvents got;
    // Its descriptions live as long as the reader.
    NettraceReader reader(got);
    for (size_t at = 0; at < stream.size(); at += std::min(piece, stream.size() - at)) {
      ASSERT_TRUE(reader.Feed(AsBytes(absl::string_view(stream).substr(at, piece))).ok());
    }
    ASSERT_TRUE(reader.Finish().ok());
    std::string lines;
    for (const CollectedEvent& one : got.events) absl::StrAppend(&lines, Line(one), "\n");
    EXPECT_EQ(lines, expected);
    EXPECT_THAT(got.lost, IsEmpty());
    EXPECT_THAT(got.points, SizeIs(1));
    ASSERT_THAT(got.starts, SizeIs(1));
    EXPECT_EQ(got.starts[0].ticks_per_second, 1'000'000'000u);
    EXPECT_EQ(got.starts[0].pointer_bytes, 8u);
    EXPECT_THAT(File(".truth"), HasSubstr(absl::StrCat("\"pid\": ", got.starts[0].pid, "\n")));
    // Recorded between 2026 and 2036.
    EXPECT_EQ(got.starts[0].realtime_ns / 1'000'000'000 / 315'576'000, 5u);
  }
}

TEST_P(RealStreamTest, BreaksOffAnywhereButAtItsEnd) {
  const std::string stream = File(".nettrace");
  for (size_t size = 0; size < stream.size(); size += 97) {
    EXPECT_TRUE(absl::IsDataLoss(Read(absl::string_view(stream).substr(0, size)))) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, RealStreamTest, testing::Values("8.0.34", "9.0.23", "10.0.15", "11.0.0"),
                         [](const auto& test) { return "V" + test.param.substr(0, test.param.find('.')); });

TEST(NettraceReaderTest, StartSaysClockProcessAndDate) {
  CollectedEvents got;
  ASSERT_TRUE(Read(NettraceWriter().Ended(), got).ok());
  ASSERT_THAT(got.starts, SizeIs(1));
  EXPECT_EQ(got.starts[0].ticks, 123u);
  EXPECT_EQ(got.starts[0].pid, 42u);
  EXPECT_EQ(got.starts[0].processors, 2u);
  EXPECT_EQ(got.starts[0].realtime_ns, 1'767'225'601'500'000'000u);  // 1 January 2026, 00:00:01.5
}

TEST(NettraceReaderTest, AnEventHasItsKindAndItsStack) {
  CollectedEvents got;
  NettraceReader reader(got);
  const std::string bytes = NettraceWriter()
                                .Describe(3, 80)
                                .Stacks(5, {{0x10, 0x20}, {0x30}})
                                .Events({{3, 0, 9, 6, 100, true, "abc"}, {3, 0, 9, 5, 4, false, ""}})
                                .Ended();
  ASSERT_TRUE(reader.Feed(AsBytes(bytes)).ok());
  ASSERT_THAT(got.events, SizeIs(2));
  EXPECT_EQ(got.events[0].event.metadata->provider, "P");
  EXPECT_EQ(got.events[0].event.metadata->name, "N");
  EXPECT_EQ(got.events[0].event.metadata->event_id, 80u);
  EXPECT_EQ(got.events[0].event.metadata->version, 2u);
  EXPECT_EQ(got.events[0].event.metadata->level, 5u);
  EXPECT_EQ(got.events[0].event.thread, 9u);
  EXPECT_TRUE(got.events[0].event.sorted);
  EXPECT_EQ(got.events[0].payload, "abc");
  EXPECT_THAT(got.events[0].stack, ElementsAre(0x30));
  EXPECT_THAT(got.events[1].stack, ElementsAre(0x10, 0x20));
  EXPECT_THAT(got.Ticks(), ElementsAre(100, 104));
}

TEST(NettraceReaderTest, AddressesOf32BitProcesses) {
  CollectedEvents got;
  const std::string stack = Little(uint32_t{1}) + Little(uint32_t{1}) + Little(uint32_t{8}) +
                            Little(uint32_t{0xffff0000}) + Little(uint32_t{2});
  const std::string bytes =
      NettraceWriter(true, 4).Describe(1, 1).Block("StackBlock", stack).Events({{1, 0, 7, 1, 0, false, ""}}).Ended();
  ASSERT_TRUE(Read(bytes, got).ok());
  ASSERT_THAT(got.events, SizeIs(1));
  EXPECT_THAT(got.events[0].stack, ElementsAre(0xffff0000, 2));
}

TEST(NettraceReaderTest, ASequencePointEndsStacks) {
  CollectedEvents got;
  const std::string bytes = NettraceWriter()
                                .Describe(1, 1)
                                .Stacks(1, {{0x10}})
                                .SequencePoint(50, {})
                                .Events({{1, 0, 7, 1, 60, false, ""}})
                                .Ended();
  ASSERT_TRUE(Read(bytes, got).ok());
  EXPECT_THAT(got.points, ElementsAre(50));
  ASSERT_THAT(got.events, SizeIs(1));
  EXPECT_THAT(got.events[0].stack, IsEmpty());
}

TEST(NettraceReaderTest, GapsInNumbersAreLostEvents) {
  CollectedEvents got;
  const std::string bytes =
      NettraceWriter()
          .Describe(1, 1)
          .Events({{1, 2, 7, 0, 1, false, ""}, {1, 0, 7, 0, 1, false, ""}, {1, 5, 7, 0, 1, false, ""}})
          .SequencePoint(50, {{7, 12}, {8, 4}})
          .Ended();
  ASSERT_TRUE(Read(bytes, got).ok());
  EXPECT_THAT(got.lost, ElementsAre(Pair(7, 2), Pair(7, 5), Pair(7, 2), Pair(8, 4)));
}

TEST(NettraceReaderTest, AnErrorIsFinal) {
  CollectedEvents got;
  NettraceReader reader(got);
  EXPECT_FALSE(reader.Feed(AsBytes(NettraceWriter().Block("Odd", "").bytes())).ok());
  EXPECT_FALSE(reader.Feed(AsBytes(NettraceWriter().bytes())).ok());
  EXPECT_THAT(reader.Finish().message(), HasSubstr("unknown kind"));
}

TEST(NettraceReaderTest, OtherVersionsAreRefusedByName) {
  const absl::Status sixth =
      Read(absl::StrCat("Nettrace", std::string(4, '\0'), Little(uint32_t{6}), Little(uint32_t{0})));
  EXPECT_TRUE(absl::IsUnimplemented(sixth)) << sixth;
  EXPECT_TRUE(absl::IsUnimplemented(Read(NettraceWriter().Block("EventBlock", "", 3).bytes())));
  EXPECT_TRUE(absl::IsDataLoss(Read("Nettrace!")));
  EXPECT_TRUE(absl::IsDataLoss(Read("HTTP/1.1 200 OK")));
}

std::string EndsInside(absl::string_view what) { return std::string(what.substr(0, what.size() - 1)); }

TEST(NettraceReaderTest, DamageIsAnError) {
  const std::string row = WrittenRow{}.Bytes();
  const std::vector<std::pair<std::string, std::string>> streams = {
      {"no start", NettraceWriter(false).Describe(1, 1).bytes()},
      {"two starts", NettraceWriter().Start(1, 8).bytes()},
      {"no clock", NettraceWriter(false).Start(0, 8).bytes()},
      {"a clock that is too fast", NettraceWriter(false).Start(2'000'000'000, 8).bytes()},
      {"odd pointers", NettraceWriter(false).Start(1, 5).bytes()},
      {"a kind that was not described", NettraceWriter().Events({WrittenRow{}}).bytes()},
      {"a kind twice", NettraceWriter().Describe(1, 1).Describe(1, 2).bytes()},
      {"kind 0", NettraceWriter().Describe(0, 1).bytes()},
      {"a description that is cut off",
       NettraceWriter().Rows("MetadataBlock", absl::StrCat("\x81", std::string(2, '\0'), "\3abc")).bytes()},
      {"a row that is cut off", NettraceWriter().Describe(1, 1).Rows("EventBlock", EndsInside(row)).bytes()},
      {"rows that are not compressed", NettraceWriter().Rows("EventBlock", row, 0).bytes()},
      {"no header", NettraceWriter().Block("EventBlock", "").bytes()},
      {"a header past the block",
       NettraceWriter().Block("EventBlock", Little(uint16_t{40}) + Little(uint16_t{1})).bytes()},
      {"a stack that is cut off",
       NettraceWriter().Block("StackBlock", Little(uint32_t{1}) + Little(uint32_t{1}) + Little(uint32_t{8})).bytes()},
      {"more stacks than there are",
       NettraceWriter().Block("StackBlock", Little(uint32_t{1}) + Little(uint32_t{0xffffffff})).bytes()},
      {"more threads than there are",
       NettraceWriter().Block("SPBlock", Little(uint64_t{1}) + Little(uint32_t{2})).bytes()},
      {"no number of threads", NettraceWriter().Block("SPBlock", Little(uint64_t{1})).bytes()},
      {"bytes behind the end", NettraceWriter().Ended() + "x"},
      {"no object", NettraceWriter().Raw("\5\6\1").bytes()},
      {"a name without end",
       NettraceWriter().Raw(absl::StrCat("\5\5\1", std::string(8, '\0'), "\xff\xff\xff\xff")).bytes()},
      {"a block of 4 GB", NettraceWriter()
                              .Raw(absl::StrCat("\5\5\1", Little(2), Little(2), Little(7), "SPBlock\6\xff\xff\xff\xff"))
                              .bytes()},
  };
  for (const auto& [what, bytes] : streams) {
    CollectedEvents got;
    NettraceReader reader(got);
    EXPECT_TRUE(absl::IsDataLoss(reader.Feed(AsBytes(bytes)))) << what;
    EXPECT_THAT(got.events, IsEmpty()) << what;
  }
}

TEST(NettraceReaderTest, TablesHaveLimits) {
  std::string descriptions;
  for (uint32_t id = 1; id <= kMaxNettraceKinds; ++id) descriptions += Description(id, id);
  EXPECT_TRUE(Read(NettraceWriter().Rows("MetadataBlock", descriptions).Ended()).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(
      Read(NettraceWriter().Rows("MetadataBlock", descriptions + Description(kMaxNettraceKinds + 1, 1)).bytes())));

  NettraceWriter stacks;
  const std::vector<std::vector<uint64_t>> block(4096, std::vector<uint64_t>(kMaxNettraceFrames, 1));
  for (size_t bytes = 0; bytes < kMaxNettraceStackBytes; bytes += 4096 * 8 * kMaxNettraceFrames)
    stacks.Stacks(1, block);
  EXPECT_TRUE(absl::IsResourceExhausted(Read(stacks.bytes())));
}

// A stack without addresses takes four bytes of the stream and more of ours.
TEST(NettraceReaderTest, EmptyStacksHaveALimitToo) {
  NettraceWriter stacks;
  const std::vector<std::vector<uint64_t>> block(1 << 18);
  for (uint32_t i = 0; i < 8; ++i) stacks.Stacks(i << 18, block);
  EXPECT_TRUE(absl::IsResourceExhausted(Read(stacks.bytes())));
}

// Runtimes send no deeper one. Each event that refers to one would cost as much as it has addresses.
TEST(NettraceReaderTest, ADeepStackIsCutWhereItIsRead) {
  CollectedEvents got;
  std::vector<uint64_t> deep(kMaxNettraceBlockBytes / 8 - 8);
  for (size_t i = 0; i < deep.size(); ++i) deep[i] = i + 1;
  NettraceWriter stream;
  stream.Describe(1, 1);
  for (uint32_t i = 0; i < 20; ++i) stream.Stacks(i + 1, {deep});
  const std::string bytes = stream.Events({{1, 0, 7, 1, 0, false, ""}, {1, 0, 7, 20, 0, false, ""}}).Ended();
  ASSERT_TRUE(Read(bytes, got).ok()) << "what is cut counts for no limit";
  ASSERT_THAT(got.events, SizeIs(2));
  for (const CollectedEvent& one : got.events) {
    ASSERT_THAT(one.stack, SizeIs(kMaxNettraceFrames));
    EXPECT_EQ(one.stack.front(), 1u);
    EXPECT_EQ(one.stack.back(), kMaxNettraceFrames);
  }
}

}  // namespace
}  // namespace clrsampler
