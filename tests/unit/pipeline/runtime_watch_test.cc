// The fate of pauses and compilations where events are lost, probes are detached or can not be planted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "os/tape_answer.h"
#include "output/seen_share.h"
#include "unit/pipeline/played_run.h"

namespace clrsampler {
namespace {

using testing::Contains;
using testing::Field;

TEST(RuntimeWatchTest, LostEventsCutWhatIsUnderWayAndAreSaid) {
  PlayedRun run("hook-losses");
  ASSERT_TRUE(run.Play().ok());
  EXPECT_EQ(CountOf(run.account().pauses, "events_lost"), 802u);
  EXPECT_EQ(CountOf(run.account().pauses, "cut"), 2u);
  EXPECT_EQ(CountOf(run.account().jit, "cut"), 5u);
  EXPECT_THAT(run.account().notices, Contains(Field(&Notice::kind, "hook_events_lost")));
}

TEST(RuntimeWatchTest, ProbesRestWhereTheyWouldCostTooMuch) {
  PlayedRun run("storm");
  ASSERT_TRUE(run.Play().ok());
  EXPECT_EQ(CountOf(run.account().pauses, "detachments"), 2u);
  EXPECT_EQ(CountOf(run.account().pauses, "detached_ms"), 1806u);
  EXPECT_THAT(run.account().notices, Contains(Field(&Notice::kind, "probes_detached")));
}

TEST(RuntimeWatchTest, AHookThatCanNotBePlantedIsSaidAndTheRunGoesOn) {
  PlayedRun run("collections");
  uint64_t refused = 0;
  run.tape().ChangeAll("hook ", [&](absl::string_view, std::string) {
    ++refused;
    TapeWriter out;
    TapeCodec<absl::Status>::Write(absl::PermissionDeniedError("no probes here"), out);
    return out.Take();
  });
  ASSERT_TRUE(run.Play().ok());
  EXPECT_GT(refused, 0u);
  const uint32_t pid = run.options.pids.front();
  EXPECT_TRUE(absl::IsPermissionDenied(run.recorder().WatchesPausesOf(pid)));
  EXPECT_TRUE(absl::IsPermissionDenied(run.recorder().WatchesCompilationsOf(pid)));
  EXPECT_EQ(run.account().samples_written, 99u) << "samples do not need probes";
  EXPECT_EQ(CountOf(run.account().pauses, "images_refused"), 2u);
}

uint64_t WeightOf(const std::string& folded) {
  uint64_t sum = 0;
  for (const absl::string_view line : absl::StrSplit(folded, '\n', absl::SkipEmpty())) {
    uint64_t weight = 0;
    EXPECT_TRUE(absl::SimpleAtoi(line.substr(line.rfind(' ') + 1), &weight)) << line;
    sum += weight;
  }
  return sum;
}

TEST(RuntimeWatchTest, BytesThatProbesDoNotSeeAreThoseThatTheRuntimeCounts) {
  PlayedRun run("allocations");
  ASSERT_TRUE(run.Play().ok());
  const auto& counts = run.account().allocations;
  EXPECT_GT(CountOf(counts, "detachments"), 0u);
  const uint64_t seen = CountOf(counts, "bytes"), counted = CountOf(counts, "counted_bytes");
  EXPECT_GT(seen, 0u);
  EXPECT_GT(counted, seen);
  EXPECT_EQ(CountOf(counts, "estimated_bytes"), seen + counted);
  EXPECT_NEAR(static_cast<double>(WeightOf(run.Folded())), static_cast<double>(seen + counted), 1);
}

TEST(RuntimeWatchTest, EventsOfAStreamThatNobodyAskedForAreLeftOut) {
  PlayedRun run("allocations");
  run.options.view = RecordView::kCpu;
  run.options.roles = false;
  ASSERT_TRUE(run.Play().ok());
  EXPECT_TRUE(run.account().allocations.empty());
  EXPECT_GT(run.account().samples_written, 0u);
}

TEST(RuntimeWatchTest, BytesAreEstimatedWhereReadingThemMayWait) {
  PlayedRun run("allocations");
  run.tape().ChangeAll("memory may wait", [](absl::string_view, std::string) {
    TapeWriter out;
    TapeCodec<bool>::Write(true, out);
    return out.Take();
  });
  ASSERT_TRUE(run.Play().ok());
  const auto& counts = run.account().allocations;
  EXPECT_EQ(CountOf(counts, "counted_bytes"), 0u);
  EXPECT_GT(CountOf(counts, "estimated_bytes"), 2 * CountOf(counts, "bytes"));
  EXPECT_NEAR(static_cast<double>(WeightOf(run.Folded())), static_cast<double>(CountOf(counts, "estimated_bytes")), 1);
}

}  // namespace
}  // namespace clrsampler
