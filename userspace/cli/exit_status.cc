#include "cli/exit_status.h"

#include <cstdio>
#include <string>

#include "status/status.h"

namespace clrsampler {

int ReportStatus(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
  const std::string hint = HintOf(status);
  if (!hint.empty()) std::fprintf(stderr, "hint: %s\n", hint.c_str());
  return status.code() == absl::StatusCode::kInvalidArgument ? kExitUsage : kExitFailed;
}

}  // namespace clrsampler
