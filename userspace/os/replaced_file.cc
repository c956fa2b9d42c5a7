#include "os/replaced_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
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

absl::StatusOr<ReplacedFile> ReplacedFile::Open(const std::string& path, const std::optional<FileOwner>& caller) {
  absl::StatusOr<ResultPlace> place = FindResultPlace(path, caller);
  if (place.ok() && !place->guarded) place = FindResultPlace(TargetOf(path), caller);
  if (!place.ok()) return Annotate(place.status(), absl::StrCat("cannot write ", path));
  ReplacedFile file;
  file.path_ = path;
  file.place_ = *std::move(place);
  const auto& [folder, name, guarded] = file.place_;
  struct stat old {};
  const bool exists = fstatat(folder.get(), name.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (exists && guarded) RETURN_IF_ERROR(Annotate(CheckGuardedResult(old, caller), path));
  if (name.empty() || (exists && !S_ISREG(old.st_mode))) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is no regular file"));
  }
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    return ErrnoError(errno, "getrandom");
  }
  std::string beside = absl::StrCat(".", name, ".", absl::Hex(number, absl::kZeroPad16));
  file.fd_ = UniqueFd(openat(folder.get(), beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
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
    : path_(std::move(other.path_)),
      place_(std::move(other.place_)),
      beside_(std::exchange(other.beside_, "")),
      fd_(std::move(other.fd_)) {}

ReplacedFile::~ReplacedFile() {
  if (!beside_.empty()) unlinkat(place_.folder.get(), beside_.c_str(), 0);
}

absl::Status ReplacedFile::Write(absl::string_view text) {
  return Annotate(WriteAll(fd_.get(), text), absl::StrCat("cannot write ", path_));
}

absl::Status ReplacedFile::Commit() {
  // Without this a crash of the machine may leave an empty file in the old one's place.
  if (fsync(fd_.get()) != 0 ||
      renameat(place_.folder.get(), beside_.c_str(), place_.folder.get(), place_.name.c_str()) != 0) {
    return ErrnoError(errno, absl::StrCat("cannot write ", path_));
  }
  beside_.clear();
  return absl::OkStatus();
}

}  // namespace clrsampler
