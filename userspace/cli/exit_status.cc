#include "cli/exit_status.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "os/file_io.h"
#include "output/summary.h"
#include "status/status.h"

namespace clrsampler {
namespace {

bool ReaderLeft(int fd) {
  pollfd state{fd, POLLOUT, 0};
  return poll(&state, 1, 0) == 1 && (state.revents & POLLERR) != 0;
}

// Errors name files and methods of the target. The lines behind the first are a log of the kernel, and are indented, so
// that none of them passes for a message of its own.
void PrintLines(absl::string_view label, absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::fprintf(stderr, "%s%s\n", std::string(label).c_str(), PrintableText(line).c_str());
    label = "  ";
  }
}

}  // namespace

int ReportStatus(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  PrintLines("error: ", status.message());
  const std::string hint = HintOf(status);
  if (!hint.empty()) PrintLines("hint: ", hint);
  return status.code() == absl::StatusCode::kInvalidArgument ? kExitUsage : kExitFailed;
}

absl::Status FinishOutput(std::FILE* output) {
  const bool failed_before = std::ferror(output) != 0;  // when a buffer was full; the error's number is gone
  const int error = std::fflush(output) == 0 ? 0 : errno;
  if (error == 0 && !failed_before) return absl::OkStatus();
  return StandardOutputError(ReaderLeft(fileno(output)) ? EPIPE : error);
}

absl::Status PrintAll(absl::string_view text) {
  return WriteAll(STDOUT_FILENO, text).ok() ? absl::OkStatus() : StandardOutputError(errno);
}

absl::Status StandardOutputError(int error) {
  if (error == EPIPE) {
    return WithHint(absl::UnavailableError("the reader of standard output left before all was written"),
                    "write to a file, and read that");
  }
  if (error == EBADF) {
    return WithHint(absl::FailedPreconditionError("standard output is closed"), "send it to a file or a pipe");
  }
  constexpr char kWhat[] = "cannot write standard output";
  return WithHint(error == 0 ? absl::UnknownError(kWhat) : ErrnoError(error, kWhat), "is the disk full?");
}

}  // namespace clrsampler
