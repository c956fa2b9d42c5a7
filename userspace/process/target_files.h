// Files of a target process, opened as the target sees them and never trusted.
//
// A container's /tmp is hostile ground and the agent is root: every path is resolved with openat2 inside the target's
// root (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS), is opened only once it is known to be a regular file, and without
// blocking.
#ifndef CLRSAMPLER_PROCESS_TARGET_FILES_H_
#define CLRSAMPLER_PROCESS_TARGET_FILES_H_

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/unique_fd.h"
#include "process/mappings.h"

namespace clrsampler {

struct OpenedFile {
  UniqueFd fd;
  struct stat status {};  // of the descriptor, not of the path
};

// The root directory of one process, held open so that its files can be read after it has exited.
class TargetFiles {
 public:
  // `proc_root` is "/proc" outside tests. A process that is already gone gives a TargetFiles on which every call fails.
  TargetFiles(absl::string_view proc_root, uint32_t pid);
  // A process that `parent` has just forked: it shares the parent's root until it changes it, so that even one that
  // lives for a millisecond can be read. Reopen takes its own root where that is still possible.
  TargetFiles(const TargetFiles& parent, uint32_t child_pid);
  TargetFiles(TargetFiles&&) = default;
  TargetFiles& operator=(TargetFiles&&) = default;

  bool reachable() const { return root_ != nullptr; }
  // Takes the process's root as it is now; keeps the old one when the process is gone.
  void Reopen();

  // An image or any other file that may stand behind symbolic links; those are followed inside the target's root only.
  absl::StatusOr<OpenedFile> OpenImage(absl::string_view path) const;

  // The file that a mapping really shows: by path when its inode is still the mapped one, else through
  // /proc/PID/map_files (deleted or replaced files), else by path on the host when device and inode are equal there.
  absl::StatusOr<OpenedFile> OpenMapping(const Mapping& mapping) const;

  // A file that a runtime writes for profilers (perf-PID.map, jit-PID.dump): no symbolic link as last component, owned
  // by the process's user or by root.
  absl::StatusOr<OpenedFile> OpenRuntimeFile(absl::string_view path) const;

  // A directory, for asking about it and about names in it (fstat, fstatvfs, fstatat), not for reading.
  absl::StatusOr<OpenedFile> OpenDirectory(absl::string_view path) const;

  // A descriptor by which a Unix socket can be connected to (connect to /proc/self/fd/N: no limit on the path's length,
  // and no second resolution of it). No symbolic link as last component.
  absl::StatusOr<UniqueFd> LocateSocket(absl::string_view path) const;

  // Removes the regular file `name` in `directory`, if `is_it` says yes to what lies there. NotFound: there is none;
  // FailedPrecondition: another file. Between the look and the removal the name may change hands, but only by those who
  // may write to the directory and remove this file themselves.
  absl::Status RemoveRuntimeFile(absl::string_view directory, absl::string_view name,
                                 absl::FunctionRef<bool(const struct stat&)> is_it) const;

  // Device and inode of the root directory; nullopt when it could never be opened.
  std::optional<std::pair<uint64_t, uint64_t>> RootIdentity() const;
  std::optional<uid_t> owner() const { return owner_; }

 private:
  absl::StatusOr<UniqueFd> OpenInRoot(absl::string_view path, uint64_t flags) const;
  absl::StatusOr<OpenedFile> Locate(absl::string_view path, uint64_t extra_flags) const;

  std::string proc_root_;
  uint32_t pid_ = 0;
  std::shared_ptr<const UniqueFd> root_;  // shared with forked children
  std::optional<uid_t> owner_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_TARGET_FILES_H_
