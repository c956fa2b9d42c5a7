#include "cli/line_output.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "cli/exit_status.h"
#include "status/status.h"

namespace clrsampler {

void LineOutput::Print(absl::string_view line) {
  if (waiting_.size() - written_ + line.size() + 1 > limit_) {
    ++left_out_;
  } else {
    absl::StrAppend(&waiting_, line, "\n");
  }
  // Text that can't be written at all is reported at the end.
  static_cast<void>(Write(0));
}

void SayLeftOut(const LineOutput& output) {
  if (output.left_out() == 0) return;
  std::fprintf(stderr, "note: %llu lines were left out, since nobody read standard output for too long\n",
               static_cast<unsigned long long>(output.left_out()));
}

absl::Status LineOutput::Finish() { return Write(-1); }

absl::Status LineOutput::Write(int timeout_ms) {
  absl::Status status;
  while (written_ < waiting_.size()) {
    pollfd ready{fd_, POLLOUT, 0};
    const int count = poll(&ready, 1, timeout_ms);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    // A pipe that has room takes this many bytes at once without waiting (pipe(7)).
    const ssize_t done = write(fd_, waiting_.data() + written_, std::min<size_t>(waiting_.size() - written_, PIPE_BUF));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      status = StandardOutputError(errno);
      break;
    }
    written_ += static_cast<size_t>(done);
  }
  // The rest is moved seldom: a reader that is behind by megabytes takes them in pages.
  if (written_ == waiting_.size() || written_ > (1 << 20)) {
    waiting_.erase(0, written_);
    written_ = 0;
  }
  return status;
}

}  // namespace clrsampler
