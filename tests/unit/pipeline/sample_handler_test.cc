#include "pipeline/sample_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "unit/pipeline/played_run.h"

namespace clrsampler {
namespace {

class SampleHandlerTest : public testing::TestWithParam<const char*> {};

TEST_P(SampleHandlerTest, SamplesAreHandledInTheOrderOfTheirTimesAndEachIsAccountedFor) {
  PlayedRun run(GetParam());
  run.options.keep_samples = true;
  ASSERT_TRUE(run.Play().ok());
  const Account& account = run.account();
  uint64_t last = 0, rows = 0;
  run.recorder().samples().ForEach([&](const SampleLog::Row& row) {
    EXPECT_GE(row.time_ns, last) << "row " << rows;
    last = row.time_ns;
    ++rows;
  });
  EXPECT_GT(rows, 0u);
  EXPECT_EQ(rows, account.samples_written);
  const auto damaged = account.lost.find("damaged_record");
  EXPECT_EQ(account.samples_taken, account.samples_written + account.samples_set_aside +
                                       (damaged == account.lost.end() ? 0 : damaged->second));
  EXPECT_EQ(account.stacks_complete + account.stacks_truncated + account.stacks_broken, account.samples_written);
}

INSTANTIATE_TEST_SUITE_P(Streams, SampleHandlerTest,
                         testing::Values("steady-10", "storm", "ring-losses", "threads-end", "exec-and-fork",
                                         "hundred-short", "dies"));

TEST(SampleHandlerStreamTest, WhatTheRingLostIsCounted) {
  PlayedRun run("ring-losses");
  ASSERT_TRUE(run.Play().ok());
  EXPECT_EQ(run.account().lost.at("ring_full"), 714u);
  EXPECT_EQ(run.account().samples_taken, 278u);
  EXPECT_GT(run.account().samples_expected, run.account().samples_taken);
}

TEST(SampleHandlerStreamTest, AProcessThatPosesAsDotNetHasNoManagedNames) {
  PlayedRun run("hostile");
  ASSERT_TRUE(run.Play().ok());
  EXPECT_GT(run.account().samples_written, 40u);
  EXPECT_EQ(run.account().managed.named, 0u);
}

TEST(SampleHandlerStreamTest, EachOfAHundredShortProcessesHasItsOwnStacks) {
  PlayedRun run("hundred-short");
  run.options.keep_samples = true;
  ASSERT_TRUE(run.Play().ok());
  std::set<uint32_t> pids;
  for (const SampleLog::Thread& thread : run.recorder().samples().threads()) pids.insert(thread.pid);
  EXPECT_GT(pids.size(), 20u) << "processes that live for some milliseconds are hit by chance";
}

}  // namespace
}  // namespace clrsampler
