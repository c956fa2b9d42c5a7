// Files of a target process, opened as the target sees them and never trusted.
//
// A container's /tmp is hostile ground and the agent is root. Every path is resolved with openat2 inside the target's
// root (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS). It is opened only once it is known to be a regular file, and without
// blocking. A file system that hangs is waited for by another process (file_broker.h), where there is one.
#ifndef CLRSAMPLER_PROCESS_TARGET_FILES_H_
#define CLRSAMPLER_PROCESS_TARGET_FILES_H_

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/mapped_file.h"
#include "os/tape.h"
#include "os/unique_fd.h"
#include "process/file_question.h"
#include "process/mappings.h"

namespace clrsampler {

class FileBroker;

struct OpenedFile {
  UniqueFd fd;  // of /dev/null where a tape plays; of a file that may_wait it only says where it is
  // The descriptor's, not the path's, as of the opening or the last Refresh. Where a tape plays, st_ctim is zero.
  struct stat status {};
  Tape* tape = nullptr;
  FileBroker* broker = nullptr;  // asks for us where the file may_wait
  bool may_wait = false;         // its file system is another program's or machine's
  bool fuse = false;             // FileAnswer::on_fuse
  bool overlay = false;
  bool metacopy = false;  // FileAnswer::metacopy
  uint32_t pid = 0;       // of the process that it was opened for

  // The descriptor's status now.
  absl::StatusOr<struct stat> StatusNow() const;
  absl::Status Refresh();
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> buffer) const;
  absl::StatusOr<MappedFile> Map(uint64_t max_bytes) const;
  bool on_overlay() const;  // on an overlayfs

 private:
  FileAnswer Ask(const FileQuestion& question) const;
};

enum class OpenFileState : uint8_t {
  kOpen,
  kNotOpen,
  kUnknown,  // no descriptor at all is to be seen: the process is about to exit
};

// The root directory of one process, held open so that its files can be read after it has exited.
class TargetFiles {
 public:
  // `proc_root` is "/proc" outside tests. A process that is already gone gives a TargetFiles on which every call fails.
  // `tape`, where there is one, has all answers. Without a `broker` this process waits for every file system itself.
  TargetFiles(absl::string_view proc_root, uint32_t pid, Tape* tape = nullptr, FileBroker* broker = nullptr);
  // A process that `parent` has just forked: it shares the parent's root until it changes it, so that even one that
  // lives for a millisecond can be read. Reopen takes its own root where that is still possible.
  TargetFiles(const TargetFiles& parent, uint32_t child_pid);
  TargetFiles(TargetFiles&&) = default;
  TargetFiles& operator=(TargetFiles&&) = default;

  bool reachable() const { return reachable_; }
  // Takes the process's root as it is now; keeps the old one when the process is gone.
  void Reopen();

  // The text of /proc/PID/`name`.
  absl::StatusOr<std::string> ReadProc(absl::string_view name, size_t max_bytes) const;
  // Where the link /proc/PID/`name` leads to.
  absl::StatusOr<std::string> ReadProcLink(absl::string_view name) const;
  // Whether the process has this file open. Looks at no more than 16 Ki descriptors, and first of all at `descriptor`,
  // where it was found the last time: that costs one stat. -1: not found yet.
  OpenFileState StateOfFile(uint64_t device, uint64_t inode, int& descriptor) const;
  bool HasOpenFile(uint64_t device, uint64_t inode) const {
    int descriptor = -1;
    return StateOfFile(device, inode, descriptor) == OpenFileState::kOpen;
  }
  // A file of the host, not of the target: as the first process of the host sees it, else by our own mounts.
  absl::StatusOr<OpenedFile> OpenOnHost(const std::string& path) const;
  absl::string_view proc_root() const { return proc_root_; }
  uint32_t pid() const { return pid_; }
  Tape* tape() const { return tape_; }
  FileBroker* broker() const { return broker_; }

  // An image or any other file that may stand behind symbolic links; those are followed inside the target's root only.
  absl::StatusOr<OpenedFile> OpenImage(absl::string_view path) const;

  // The file that a mapping really shows. It is found by path when its inode is still the mapped one, else through
  // /proc/PID/map_files (deleted or replaced files), else by path on the host when device and inode are equal there.
  absl::StatusOr<OpenedFile> OpenMapping(const Mapping& mapping) const;

  // A file that a runtime writes for profilers (perf-PID.map, jit-PID.dump): no symbolic link as last component, owned
  // by the process's user or by root.
  absl::StatusOr<OpenedFile> OpenRuntimeFile(absl::string_view path) const;

  // A directory, for asking about it (fstat, fstatvfs) and for making names in it, not for reading. A name in it may be
  // that of a mount of a user: to ask about it may wait where RESOLVE_NO_XDEV does not end the call.
  absl::StatusOr<OpenedFile> OpenDirectory(absl::string_view path) const;
  // FailedPrecondition: a part of the path is a symbolic link, or no directory.
  absl::StatusOr<OpenedFile> OpenUnlinkedDirectory(absl::string_view path) const;

  // A descriptor by which a Unix socket can be connected to (connect to /proc/self/fd/N: no limit on the path's length,
  // and no second resolution of it). No symbolic link as last component. FailedPrecondition: it is no socket, or it
  // lies on a file system that may not answer.
  absl::StatusOr<OpenedFile> LocateSocket(absl::string_view path) const;

  // Removes the regular file `name` in `directory`, if `is_it` says yes to what lies there. NotFound: there is none;
  // FailedPrecondition: another file. Between the look and the removal the name may change hands, but only by those who
  // may write to the directory and remove this file themselves.
  absl::Status RemoveRuntimeFile(absl::string_view directory, absl::string_view name,
                                 absl::FunctionRef<bool(const struct stat&)> is_it) const;

  // Device and inode of the root directory; nullopt when it could never be opened.
  std::optional<std::pair<uint64_t, uint64_t>> RootIdentity() const { return root_identity_; }
  // The mount namespace that paths are looked up in: its inode, as of the last Reopen; 0: not known.
  uint64_t mount_namespace() const { return mount_namespace_; }
  std::optional<uid_t> owner() const { return owner_; }

 private:
  FileQuestion Question(FileQuestionKind kind, absl::string_view path) const;
  FileAnswer Ask(const FileQuestion& question, absl::string_view place) const;
  // Asks about a path in the root.
  FileAnswer Ask(FileQuestionKind kind, absl::string_view path) const;
  absl::StatusOr<OpenedFile> Opened(FileAnswer answer) const;
  void ReopenNow();
  std::vector<uint32_t> RootAnswer() const;
  void TakeRootAnswer(const std::vector<uint32_t>& answer);
  // Asks this machine, where no tape plays.
  template <typename Open>
  absl::StatusOr<OpenedFile> ThroughTape(Open&& open, absl::string_view question) const;

  std::string proc_root_;
  uint32_t pid_ = 0;
  Tape* tape_ = nullptr;
  FileBroker* broker_ = nullptr;
  uint64_t mount_namespace_ = 0;
  std::optional<std::pair<uint64_t, uint64_t>> root_identity_;
  bool reachable_ = false;
  std::shared_ptr<const UniqueFd> root_;  // shared with forked children
  std::optional<uid_t> owner_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_TARGET_FILES_H_
