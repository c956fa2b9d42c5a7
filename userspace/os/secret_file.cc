#include "os/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "os/file_io.h"
#include "os/unique_fd.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<std::string> ReadSecretFile(const std::string& path, size_t max_bytes) {
  // Non-blocking: a pipe of that name must not hold us.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return ErrnoError(errno, path);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoError(errno, path);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, " is not a file"));
  const std::string hint = absl::StrCat("chmod 0600 ", path, ", or 0640 for its group");
  if ((info.st_mode & S_IRWXO) != 0) {
    return WithHint(absl::PermissionDeniedError(absl::StrCat(path, " is a secret, and every user may open it")), hint);
  }
  if ((info.st_mode & S_IWGRP) != 0) {
    return WithHint(absl::PermissionDeniedError(absl::StrCat(path, " is a secret, and its group may change it")), hint);
  }
  return ReadWholeFile(fd.get(), max_bytes);
}

}  // namespace clrsampler
