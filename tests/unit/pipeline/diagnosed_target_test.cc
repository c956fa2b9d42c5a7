#include "pipeline/diagnosed_target.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "status/status.h"

namespace clrsampler {
namespace {

TEST(DiagnosedTargetTest, AnErrorNamesTheProcessAndSaysWhatToDo) {
  const absl::Status explained = ExplainDiagnostics(absl::PermissionDeniedError("it belongs to another user"), 7);
  EXPECT_EQ(explained.message(), "no events of process 7: it belongs to another user");
  EXPECT_EQ(HintOf(explained), "run it as the user of that process, or by sudo");
}

TEST(DiagnosedTargetTest, DoctorIsOnlyNamedWhereNothingBetterIsKnown) {
  const absl::Status error = absl::FailedPreconditionError("/tmp/x lies on a file system that may not answer");
  EXPECT_TRUE(absl::StrContains(HintOf(ExplainDiagnostics(error, 7)), "doctor --pid 7"));
  EXPECT_EQ(HintOf(ExplainDiagnostics(WithHint(error, "put the folder on a tmpfs"), 7)), "put the folder on a tmpfs");
}

}  // namespace
}  // namespace clrsampler
