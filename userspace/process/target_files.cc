#include "process/target_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kDeleted = " (deleted)";

// Opening a file can be an act: a watchdog device starts to count, a FIFO lets its writer go on. A container may make
// such a node and not open it, but the agent may. So a file is first only located, and opened when it is a regular one.
constexpr uint64_t kLocateFlags = O_PATH | O_CLOEXEC;
// O_NONBLOCK: opening must not wait for the holder of a lease (fcntl F_SETLEASE).
constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// `located` was opened with kLocateFlags; a regular file behind it may be opened by OpenLocated.
absl::StatusOr<OpenedFile> Checked(UniqueFd located, absl::string_view path) {
  OpenedFile file{std::move(located), {}};
  if (fstat(file.fd.get(), &file.status) != 0) return ErrnoError(errno, path);
  if (!S_ISREG(file.status.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  }
  return file;
}

absl::StatusOr<OpenedFile> OpenLocated(absl::StatusOr<OpenedFile> located, absl::string_view path) {
  if (!located.ok()) return located;
  // The same inode, whatever stands at its path by now.
  located->fd = UniqueFd(open(absl::StrCat("/proc/self/fd/", located->fd.get()).c_str(), kReadFlags));
  if (!located->fd.valid()) return ErrnoError(errno, path);
  return located;
}

}  // namespace

TargetFiles::TargetFiles(absl::string_view proc_root, uint32_t pid) : proc_root_(proc_root), pid_(pid) { Reopen(); }

TargetFiles::TargetFiles(const TargetFiles& parent, uint32_t child_pid)
    : proc_root_(parent.proc_root_), pid_(child_pid), root_(parent.root_), owner_(parent.owner_) {}

void TargetFiles::Reopen() {
  const std::string directory = absl::StrCat(proc_root_, "/", pid_);
  UniqueFd root(open(absl::StrCat(directory, "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return;  // what was open before is still the best there is
  root_ = std::make_shared<const UniqueFd>(std::move(root));
  struct stat status {};
  if (stat(directory.c_str(), &status) == 0) owner_ = status.st_uid;
}

absl::StatusOr<UniqueFd> TargetFiles::OpenInRoot(absl::string_view path, uint64_t flags) const {
  if (root_ == nullptr) {
    return absl::NotFoundError(absl::StrCat(path, ": the root directory of process ", pid_, " can't be reached"));
  }
  open_how how{};
  how.flags = flags;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  UniqueFd fd(static_cast<int>(syscall(SYS_openat2, root_->get(), std::string(path).c_str(), &how, sizeof how)));
  if (!fd.valid()) return ErrnoError(errno, path);
  return fd;
}

absl::StatusOr<OpenedFile> TargetFiles::Locate(absl::string_view path, uint64_t extra_flags) const {
  absl::StatusOr<UniqueFd> fd = OpenInRoot(path, kLocateFlags | extra_flags);
  if (!fd.ok()) return fd.status();
  return Checked(*std::move(fd), path);
}

absl::StatusOr<OpenedFile> TargetFiles::OpenDirectory(absl::string_view path) const {
  absl::StatusOr<UniqueFd> fd = OpenInRoot(path, kLocateFlags | O_DIRECTORY);
  if (!fd.ok()) return fd.status();
  OpenedFile directory{*std::move(fd), {}};
  if (fstat(directory.fd.get(), &directory.status) != 0) return ErrnoError(errno, path);
  return directory;
}

absl::StatusOr<OpenedFile> TargetFiles::OpenImage(absl::string_view path) const {
  return OpenLocated(Locate(path, 0), path);
}

absl::StatusOr<OpenedFile> TargetFiles::OpenMapping(const Mapping& mapping) const {
  const absl::string_view path = absl::StripSuffix(mapping.path, kDeleted);
  absl::StatusOr<OpenedFile> by_path = Locate(path, 0);
  // Device numbers are not compared here: stacked file systems (overlayfs, btrfs) report other ones in maps than in
  // stat.
  if (by_path.ok() && by_path->status.st_ino == mapping.inode) return OpenLocated(std::move(by_path), path);

  // The file was deleted, replaced, or lies in a mount that the path does not reach: the kernel still has it.
  const std::string map_file = absl::StrFormat("%s/%u/map_files/%x-%x", proc_root_, pid_, mapping.start, mapping.end);
  UniqueFd fd(open(map_file.c_str(), static_cast<int>(kLocateFlags)));
  if (fd.valid()) return OpenLocated(Checked(std::move(fd), mapping.path), mapping.path);

  // The process is gone before we could look. On the host the same path may be the same file; both numbers must agree.
  UniqueFd host(open(std::string(path).c_str(), static_cast<int>(kLocateFlags)));
  if (host.valid()) {
    absl::StatusOr<OpenedFile> file = Checked(std::move(host), path);
    if (file.ok() && file->status.st_ino == mapping.inode && major(file->status.st_dev) == mapping.device_major &&
        minor(file->status.st_dev) == mapping.device_minor) {
      return OpenLocated(std::move(file), path);
    }
  }
  if (!by_path.ok()) return by_path.status();
  return absl::NotFoundError(absl::StrCat(path, " was replaced after process ", pid_, " mapped it"));
}

absl::StatusOr<OpenedFile> TargetFiles::OpenRuntimeFile(absl::string_view path) const {
  absl::StatusOr<OpenedFile> file = Locate(path, O_NOFOLLOW);
  if (!file.ok()) return file.status();
  if (file->status.st_uid != 0 && owner_.has_value() && file->status.st_uid != *owner_) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, " belongs to user ", file->status.st_uid, ", process ", pid_, " runs as ", *owner_));
  }
  return OpenLocated(std::move(file), path);
}

absl::StatusOr<UniqueFd> TargetFiles::LocateSocket(absl::string_view path) const {
  absl::StatusOr<UniqueFd> fd = OpenInRoot(path, kLocateFlags | O_NOFOLLOW);
  if (!fd.ok()) return fd.status();
  struct stat status {};
  if (fstat(fd->get(), &status) != 0) return ErrnoError(errno, path);
  if (!S_ISSOCK(status.st_mode)) return absl::FailedPreconditionError(absl::StrCat(path, " is not a socket"));
  return fd;
}

absl::Status TargetFiles::RemoveRuntimeFile(absl::string_view directory, absl::string_view name,
                                            absl::FunctionRef<bool(const struct stat&)> is_it) const {
  const absl::StatusOr<UniqueFd> parent = OpenInRoot(directory, kLocateFlags | O_DIRECTORY);
  if (!parent.ok()) return parent.status();
  const std::string file(name);
  struct stat status {};
  if (fstatat(parent->get(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return ErrnoError(errno, absl::StrCat(directory, "/", name));
  }
  if (!S_ISREG(status.st_mode) || !is_it(status)) {
    return absl::FailedPreconditionError(absl::StrCat(directory, "/", name, " is another file by now"));
  }
  if (unlinkat(parent->get(), file.c_str(), 0) != 0) return ErrnoError(errno, absl::StrCat(directory, "/", name));
  return absl::OkStatus();
}

std::optional<std::pair<uint64_t, uint64_t>> TargetFiles::RootIdentity() const {
  struct stat status {};
  if (root_ == nullptr || fstat(root_->get(), &status) != 0) return std::nullopt;
  return std::make_pair(uint64_t{status.st_dev}, uint64_t{status.st_ino});
}

}  // namespace clrsampler
