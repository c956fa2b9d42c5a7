#include "pipeline/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "clrsampler/wire.h"
#include "unit/pipeline/played_run.h"

namespace clrsampler {
namespace {

// Names, stacks and counts of a run are those that it had when it was saved, byte for byte.
class StreamTest : public testing::TestWithParam<const char*> {};

TEST_P(StreamTest, PlaysToTheTextThatTheRecordingWrote) {
  PlayedRun run(GetParam());
  ASSERT_TRUE(run.recorded().whole());
  ASSERT_TRUE(run.Play().ok());
  EXPECT_EQ(run.Folded(), FoldedOf(GetParam()));
  EXPECT_EQ(run.recorded().missing(), 0u)
      << "the program asks for what the stream does not have, first for " << run.recorded().first_missing();
}

TEST(RecorderTest, ProgressHasWhatTheKernelCouldNotSend) {
  PlayedRun run("ring-losses");
  run.tape().ChangeAll("counters", [](absl::string_view, std::string answer) {
    const uint64_t drops = 7;
    answer.replace(offsetof(wire_counters, drops) + WIRE_DROP_RING_FULL * sizeof drops, sizeof drops,
                   reinterpret_cast<const char*>(&drops), sizeof drops);
    return answer;
  });
  uint64_t lost = 0;
  ASSERT_TRUE(run.Play([&](const RecordProgress& progress) { lost = progress.lost; }).ok());
  EXPECT_EQ(lost, 7u);
}

INSTANTIATE_TEST_SUITE_P(All, StreamTest,
                         testing::Values("steady-8", "steady-9", "steady-10", "collections", "pauses", "allocations",
                                         "compilations", "storm", "ring-losses", "hook-losses", "dynamic-methods",
                                         "dies", "threads-end", "exec-and-fork", "hundred-short", "hostile"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace clrsampler
