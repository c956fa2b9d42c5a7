#include "os/replaced_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// There is no way to read it without setting it.
mode_t Umask() {
  const mode_t mask = umask(0);
  umask(mask);
  return mask;
}

std::string TargetOf(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string target(resolved);
  free(resolved);
  return target;
}

}  // namespace

absl::StatusOr<ReplacedFile> ReplacedFile::Open(const std::string& path) {
  ReplacedFile file;
  file.path_ = TargetOf(path);
  struct stat old {};
  const bool exists = stat(file.path_.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is no regular file"));
  }
  const size_t name = file.path_.rfind('/') + 1;  // 0 where there is no slash
  std::string beside = absl::StrCat(file.path_.substr(0, name), ".", file.path_.substr(name), ".XXXXXX");
  file.fd_ = UniqueFd(mkostemp(beside.data(), O_CLOEXEC));
  if (!file.fd_.valid()) return ErrnoError(errno, absl::StrCat("cannot write ", path));
  file.beside_ = std::move(beside);
  const mode_t mode = exists ? old.st_mode & 07777 : 0666 & ~Umask();
  if (fchmod(file.fd_.get(), mode) != 0) return ErrnoError(errno, absl::StrCat("cannot write ", path));
  if (exists && (old.st_uid != geteuid() || old.st_gid != getegid())) {
    // Only root can give a file to its old owner. Any other user who may replace it owns the new one.
    [[maybe_unused]] const int given = fchown(file.fd_.get(), old.st_uid, old.st_gid);
  }
  return file;
}

ReplacedFile::ReplacedFile(ReplacedFile&& other) noexcept
    : path_(std::move(other.path_)), beside_(std::exchange(other.beside_, "")), fd_(std::move(other.fd_)) {}

ReplacedFile::~ReplacedFile() {
  if (!beside_.empty()) unlink(beside_.c_str());
}

absl::Status ReplacedFile::Write(absl::string_view text) {
  return Annotate(WriteAll(fd_.get(), text), absl::StrCat("cannot write ", path_));
}

absl::Status ReplacedFile::Commit() {
  // Without this a crash of the machine may leave an empty file in the old one's place.
  if (fsync(fd_.get()) != 0 || rename(beside_.c_str(), path_.c_str()) != 0) {
    return ErrnoError(errno, absl::StrCat("cannot write ", path_));
  }
  beside_.clear();
  return absl::OkStatus();
}

}  // namespace clrsampler
