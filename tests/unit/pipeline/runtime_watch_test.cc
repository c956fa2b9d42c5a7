// The fate of pauses and compilations where events are lost, probes are detached or can not be planted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "os/tape_answer.h"
#include "unit/pipeline/played_run.h"

namespace clrsampler {
namespace {

using testing::Contains;
using testing::Field;

uint64_t Count(const std::map<std::string, uint64_t>& counts, const std::string& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

TEST(RuntimeWatchTest, LostEventsCutWhatIsUnderWayAndAreSaid) {
  PlayedRun run("hook-losses");
  ASSERT_TRUE(run.Play().ok());
  EXPECT_EQ(Count(run.account().pauses, "events_lost"), 802u);
  EXPECT_EQ(Count(run.account().pauses, "cut"), 2u);
  EXPECT_EQ(Count(run.account().jit, "cut"), 5u);
  EXPECT_THAT(run.account().notices, Contains(Field(&Notice::kind, "hook_events_lost")));
}

TEST(RuntimeWatchTest, ProbesRestWhereTheyWouldCostTooMuch) {
  PlayedRun run("storm");
  ASSERT_TRUE(run.Play().ok());
  EXPECT_EQ(Count(run.account().pauses, "detachments"), 2u);
  EXPECT_EQ(Count(run.account().pauses, "detached_ms"), 1806u);
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
  EXPECT_EQ(Count(run.account().pauses, "images_refused"), 2u);
}

}  // namespace
}  // namespace clrsampler
