#include "cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "os/file_io.h"
#include "os/standard_descriptors.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<OutputFile> OutputFile::Open(const std::string& path) {
  OutputFile file;
  if (path.empty() || path == "-") {
    if (HasStandardOutput()) return file;
    return WithHint(absl::FailedPreconditionError("standard output is closed"), "name a file with --output");
  }
  file.path_ = path;
  absl::StatusOr<UniqueFd> fd = OpenCreated(path, CallerBySudo(), /*secret=*/false, file.made_);
  if (!fd.ok()) {
    return WithHint(Annotate(fd.status(), "cannot write"),
                    absl::IsFailedPrecondition(fd.status())
                        ? "give another name, or a folder of your own"
                        : "give a file in a folder that exists and that this user may write to");
  }
  file.fd_ = *std::move(fd);
  return file;
}

int OutputFile::descriptor() const { return fd_.valid() ? fd_.get() : STDOUT_FILENO; }

absl::Status OutputFile::Write(absl::string_view text) {
  if (reader_left_) return absl::OkStatus();  // Finish says so
  if (!began_ && fd_.valid()) {
    struct stat status {};
    // A device or a pipe has nothing to cut.
    if (fstat(fd_.get(), &status) == 0 && S_ISREG(status.st_mode) && ftruncate(fd_.get(), 0) != 0) {
      return ErrnoError(errno, absl::StrCat("cannot write ", path_));
    }
  }
  began_ = true;
  if (made_ != nullptr) made_->Keep();
  const absl::Status written = WriteAll(descriptor(), text);
  if (written.ok()) return written;
  if (!fd_.valid() && errno == EPIPE) {
    reader_left_ = true;
    return absl::OkStatus();
  }
  return WithHint(
      Annotate(written, fd_.valid() ? absl::StrCat("cannot write ", path_) : "cannot write standard output"),
      "is the disk full?");
}

absl::Status OutputFile::Finish() {
  if (!began_) RETURN_IF_ERROR(Write(""));
  if (reader_left_) {
    return WithHint(absl::UnavailableError("the reader of standard output left before all stacks were written"),
                    "write to a file with --output, and read that");
  }
  // Network file systems report a full disk only now.
  if (fd_.valid()) {
    if (close(fd_.release()) != 0) return ErrnoError(errno, absl::StrCat("cannot write ", path_));
    return absl::OkStatus();
  }
  // The reader of a pipe sees its end now. It does not wait for the kernel to take our probes out, which takes half a
  // second.
  const UniqueFd nothing(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (nothing.valid()) dup2(nothing.get(), STDOUT_FILENO);
  return absl::OkStatus();
}

bool IsOneResult(int a, int b) {
  if (a == STDOUT_FILENO && b == STDOUT_FILENO) return true;
  struct stat one {
  }, other{};
  return fstat(a, &one) == 0 && fstat(b, &other) == 0 && S_ISREG(one.st_mode) && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

}  // namespace clrsampler
