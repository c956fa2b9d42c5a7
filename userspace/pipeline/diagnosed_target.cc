#include "pipeline/diagnosed_target.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "formats/proc/status_text.h"
#include "process/proc_root.h"
#include "status/status.h"

namespace clrsampler {

absl::Status ExplainDiagnostics(const absl::Status& status, uint32_t pid) {
  const auto hint = [&]() -> std::string {
    switch (status.code()) {
      case absl::StatusCode::kNotFound:
        return "it has one unless it is no .NET process, is still starting, or runs with DOTNET_EnableDiagnostics=0";
      case absl::StatusCode::kPermissionDenied:
        return "run it as the user of that process, or by sudo";
      case absl::StatusCode::kDeadlineExceeded:
        return "the process may be stopped (SIGSTOP, a debugger), or another tool may hold its diagnostics server";
      case absl::StatusCode::kUnavailable:
        return "the process may be about to end, or many tools may ask it at once";
      case absl::StatusCode::kUnimplemented:
        return "its runtime is newer than this program knows; try a newer clrsampler";
      default:
        return absl::StrCat("clrsampler doctor --pid ", pid, " says more about the process");
    }
  };
  return WithHint(Annotate(status, absl::StrCat("no events of process ", pid)), hint());
}

absl::StatusOr<TargetIdentity> IdentityOfTarget(uint32_t pid, const TargetFiles& files) {
  const std::optional<uint64_t> ticks = StartTicksOfLiving(kProcRoot, pid);
  if (!ticks.has_value())
    return WithHint(absl::NotFoundError(absl::StrCat("there is no process ", pid)),
                    "clrsampler ps lists .NET processes");
  if (!files.reachable()) {
    return ExplainDiagnostics(absl::PermissionDeniedError("it belongs to another user"), pid);
  }
  ASSIGN_OR_RETURN(const std::string text, files.ReadProc("status", kMaxStatusBytes));
  ASSIGN_OR_RETURN(const StatusText status, ParseStatus(text));
  return TargetIdentity{pid, status.innermost_tgid(), *ticks};
}

}  // namespace clrsampler
