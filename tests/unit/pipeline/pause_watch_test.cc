// Pauses out of real runs.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "output/seen_share.h"
#include "unit/pipeline/played_run.h"

namespace clrsampler {
namespace {

TEST(PauseWatchTest, EachCollectionOfARunIsAPauseWithItsGeneration) {
  PlayedRun run("collections");
  ASSERT_TRUE(run.Play().ok());
  const auto& pauses = run.account().pauses;
  EXPECT_EQ(CountOf(pauses, "pauses"), 3358u);
  EXPECT_EQ(CountOf(pauses, "gen0"), 1894u);
  EXPECT_EQ(CountOf(pauses, "gen1"), 1325u);
  EXPECT_EQ(CountOf(pauses, "gen2"), 139u);
  EXPECT_EQ(CountOf(pauses, "events_lost"), 0u);
}

TEST(PauseWatchTest, StacksOfPausesAreTakenWhileThreadsStandStill) {
  PlayedRun run("pauses");
  ASSERT_TRUE(run.Play().ok());
  EXPECT_GT(run.account().samples_written, 0u);
  EXPECT_LT(run.account().samples_written, run.account().samples_taken) << "most samples are taken outside of pauses";
}

TEST(PauseWatchTest, WithoutItsEventsNoPauseIsMade) {
  PlayedRun run("collections");
  run.options.roles = false;
  ASSERT_TRUE(run.Play().ok());
  EXPECT_EQ(CountOf(run.account().pauses, "pauses"), 0u);
}

}  // namespace
}  // namespace clrsampler
