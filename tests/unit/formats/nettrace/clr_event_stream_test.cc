#include "formats/nettrace/clr_event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "formats/byte_reader.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/formats/nettrace/nettrace_writer.h"

namespace clrsampler {
namespace {

using enum ClrEventKind;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(ClrEventStreamTest, OnlyKindsThatWereAskedForComeInOrder) {
  const std::string bytes = *ReadWholeFile(TestData("nettrace/10.0.15.nettrace"), 1 << 20);
  std::vector<uint64_t> times;
  std::vector<ClrEventKind> kinds;
  size_t with_stack = 0;
  const std::vector<ClrEventKind> wanted{kExceptionThrown, kThreadCreated};
  ClrEventStream stream(wanted, [&](const ClrEventRecord& record) {
    times.push_back(record.time_ns);
    kinds.push_back(record.event.kind);
    with_stack += !record.stack.empty();
  });
  ASSERT_TRUE(stream.Take(AsBytes(bytes)).ok());
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_THAT(kinds, Each(testing::AnyOf(kExceptionThrown, kThreadCreated)));
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), kExceptionThrown), 10);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_GE(with_stack, 10u);
  EXPECT_EQ(stream.lost() + stream.damaged() + stream.unsorted(), 0u);
}

std::string RuntimeEvents(const std::vector<WrittenRow>& rows, uint64_t ticks_per_second = 1'000'000'000) {
  return NettraceWriter(false)
      .Start(ticks_per_second, 8)
      .Rows("MetadataBlock", Description(1, 251, kClrProvider) + Description(2, 80, kClrProvider) + Description(3, 251))
      .Events(rows)
      .Ended();
}

TEST(ClrEventStreamTest, DamagedAndLostEventsAreCountedAndOthersOfThatProviderOnlyTaken) {
  std::vector<ClrEventKind> kinds;
  ClrEventStream stream(AllClrEventKinds(), [&](const ClrEventRecord& record) { kinds.push_back(record.event.kind); });
  ASSERT_TRUE(stream
                  .Take(AsBytes(RuntimeEvents({{1, 0, 7, 0, 5, false, ""},
                                               {2, 4, 7, 0, 1, false, "short"},
                                               {3, 0, 7, 0, 1, false, ""},
                                               {1, 0, 7, 0, 1, false, ""}})))
                  .ok());
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_THAT(kinds, ElementsAre(kExceptionCatcherLeave, kExceptionCatcherLeave));
  EXPECT_EQ(stream.damaged(), 1u);
  EXPECT_EQ(stream.lost(), 4u);
}

TEST(ClrEventStreamTest, ASlowerClockIsConverted) {
  std::vector<uint64_t> times;
  ClrEventStream stream(AllClrEventKinds(), [&](const ClrEventRecord& record) { times.push_back(record.time_ns); });
  ASSERT_TRUE(stream.Take(AsBytes(RuntimeEvents({{1, 0, 7, 0, 5, false, ""}}, 10'000'000))).ok());
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_THAT(times, ElementsAre(500));
}

TEST(ClrEventStreamTest, WhatCameBeforeABreakIsGivenOut) {
  std::vector<uint64_t> times;
  ClrEventStream stream(AllClrEventKinds(), [&](const ClrEventRecord& record) { times.push_back(record.time_ns); });
  const std::string bytes = RuntimeEvents({{1, 0, 7, 0, 5, false, ""}});
  ASSERT_TRUE(stream.Take(AsBytes(bytes.substr(0, bytes.size() - 1))).ok());
  EXPECT_THAT(times, IsEmpty());
  EXPECT_TRUE(absl::IsDataLoss(stream.Finish()));
  EXPECT_THAT(times, SizeIs(1));
}

TEST(ClrEventStreamTest, DemandsAddUp) {
  const std::vector<ClrEventKind> kinds{kExceptionThrown, kJitCompilationFinished, kThreadCreated};
  const ClrEventDemand demand = DemandOf(kinds);
  EXPECT_EQ(demand.keywords, 0x8810u);
  EXPECT_EQ(demand.level, 5u);
}

}  // namespace
}  // namespace clrsampler
