// Pauses out of real runs.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "unit/pipeline/played_run.h"

namespace clrsampler {
namespace {

uint64_t Count(const std::map<std::string, uint64_t>& counts, const std::string& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

TEST(PauseWatchTest, EachCollectionOfARunIsAPauseWithItsGeneration) {
  PlayedRun run("collections");
  ASSERT_TRUE(run.Play().ok());
  const auto& pauses = run.account().pauses;
  EXPECT_EQ(Count(pauses, "pauses"), 3358u);
  EXPECT_EQ(Count(pauses, "gen0"), 1894u);
  EXPECT_EQ(Count(pauses, "gen1"), 1325u);
  EXPECT_EQ(Count(pauses, "gen2"), 139u);
  EXPECT_EQ(Count(pauses, "events_lost"), 0u);
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
  EXPECT_EQ(Count(run.account().pauses, "pauses"), 0u);
}

}  // namespace
}  // namespace clrsampler
