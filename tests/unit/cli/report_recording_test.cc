#include "cli/report_recording.h"

#include <gtest/gtest.h>

#include <string>

#include "status/status.h"

namespace clrsampler {
namespace {

TEST(ReportRecordingTest, AFailureHasTheMessageAndTheHintOfItsCause) {
  const auto recorded =
      RecordForReport({.pid = 1u << 30, .duration_ns = 1'000'000, .parts = {ReportPart::kWaits}}).status();
  EXPECT_EQ(recorded.message(), "waits could not be recorded: no process 1073741824");
  EXPECT_EQ(HintOf(recorded), "ps -e lists processes; inside a container the ids are others than on the host");
}

}  // namespace
}  // namespace clrsampler
