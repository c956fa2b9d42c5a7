// How the program ends: its exit statuses, and how an error is said.
#ifndef CLRSAMPLER_CLI_EXIT_STATUS_H_
#define CLRSAMPLER_CLI_EXIT_STATUS_H_

#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// Says an error and its hint on standard error. Returns the exit status: wrong usage is kInvalidArgument.
int ReportStatus(const absl::Status& status);

// The error of writing standard output, with a hint. `error`: errno; 0: not known.
absl::Status StandardOutputError(int error);
// Writes all of it to standard output.
absl::Status PrintAll(absl::string_view text);

// Whether all that was printed has been written: a full disk or a reader that left is seen only then. `output`:
// stdout, outside tests.
absl::Status FinishOutput(std::FILE* output);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_EXIT_STATUS_H_
