#include "process/file_question.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/proc/maps_text.h"
#include "formats/proc/mountinfo_text.h"
#include "os/file_io.h"
#include "os/pid_namespace.h"
#include "process/target_files.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr int kMaxDescriptors = 16 * 1024;
constexpr size_t kMaxMountInfoBytes = 8 << 20;  // mounts have some 300 bytes, overlays of many layers 4 KiB

// Opening a file can be an act: a watchdog device starts to count, a FIFO lets its writer go on. A container may be
// able to make such a node and not to open it. The agent may open it. So a file is first only located, and opened when
// it is a regular one.
constexpr uint64_t kLocateFlags = O_PATH | O_CLOEXEC;
// O_NONBLOCK: opening must not wait for the holder of a lease (fcntl F_SETLEASE).
constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// linux/magic.h lacks some.
constexpr uint64_t kXfs = 0x58465342, kZfs = 0x2fc12fc1, kBcachefs = 0xca451a4e, kExfat = 0x2011bab0;
constexpr uint64_t kConfigfs = 0x62656570;

// File systems whose reads end, as long as the host's own disks answer.
bool IsLocal(uint64_t type) {
  switch (type) {
    case EXT4_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
    case HUGETLBFS_MAGIC:
    case SQUASHFS_MAGIC:
    case EROFS_SUPER_MAGIC_V1:
    case ISOFS_SUPER_MAGIC:
    case MSDOS_SUPER_MAGIC:
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case kXfs:
    case kZfs:
    case kBcachefs:
    case kExfat:
      return true;
    default:
      return false;
  }
}

// File systems whose files are the kernel's own. Reading one can be an act, and mapping one can show the registers of a
// device (resource0 of a PCI device in sysfs). A user can mount such a file over any of its own, and the agent may open
// it.
bool IsOfKernel(uint64_t type) {
  switch (type) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
    case SELINUX_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case BPF_FS_MAGIC:
    case EFIVARFS_MAGIC:
    case PSTOREFS_MAGIC:
    case BINFMTFS_MAGIC:
    case NSFS_MAGIC:
    case kConfigfs:
      return true;
    default:
      return false;
  }
}

// The options of the file system that this descriptor's file lies on. nullopt: its mount is none of the process's own.
// Somebody else has mounted it, and passed the file on. Or the process has changed its root to a folder below the
// mount's: its list lacks that mount. Only another process of its namespace, or statmount(2) from Linux 6.11 on, could
// tell the two apart.
std::optional<std::string> MountOptions(const FileQuestion& question, int fd) {
  const absl::StatusOr<std::string> info = ReadWholeFile(absl::StrCat("/proc/self/fdinfo/", fd), 4096);
  const std::optional<uint64_t> mount = info.ok() ? MountIdOfDescriptor(*info) : std::nullopt;
  if (!mount) return std::nullopt;
  const absl::StatusOr<std::string> mounts =
      ReadWholeFile(absl::StrCat(question.proc_root, "/", question.pid, "/mountinfo"), kMaxMountInfoBytes);
  const std::optional<absl::string_view> options = mounts.ok() ? FileSystemOptionsOf(*mounts, *mount) : std::nullopt;
  return options ? std::make_optional<std::string>(*options) : std::nullopt;
}

// Whether such an overlay copies no data when only the owner or the mode of a file is changed. The kernel names the
// option only where it is not the default.
bool CopiesNoData(absl::string_view overlay_options) {
  if (const auto value = OptionValue(overlay_options, "metacopy")) return *value == "on";
  const absl::StatusOr<std::string> usual = ReadWholeFile("/sys/module/overlay/parameters/metacopy", 16);
  return usual.ok() && absl::StartsWith(*usual, "Y");
}

// An overlay that a user mounted in a namespace of its own may have a FUSE file system below it.
bool MountsAreOfHost(const FileQuestion& question) {
  constexpr ino_t kInitialUserNamespace = 0xEFFFFFFD;  // PROC_USER_INIT_INO, include/linux/proc_ns.h
  const UniqueFd mounts(
      open(absl::StrCat(question.proc_root, "/", question.pid, "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!mounts.valid()) return false;
  const UniqueFd user(ioctl(mounts.get(), NS_GET_USERNS));
  struct stat status {};
  return user.valid() && fstat(user.get(), &status) == 0 && status.st_ino == kInitialUserNamespace;
}

class Answerer {
 public:
  Answerer(const FileQuestion& question, int fd) : question_(question), fd_(fd) {}

  FileAnswer Answer() {
    answer_.status = Ask();
    if (!answer_.status.ok()) answer_.fd.reset();
    return std::move(answer_);
  }

 private:
  absl::Status Ask() {
    switch (question_.kind) {
      case FileQuestionKind::kRoot:
        return Root();
      case FileQuestionKind::kImage:
        RETURN_IF_ERROR(Locate(question_.path, 0));
        return OpenLocated(question_.path);
      case FileQuestionKind::kMapping:
        return Mapping();
      case FileQuestionKind::kRuntimeFile:
        return RuntimeFile();
      case FileQuestionKind::kHost:
        RETURN_IF_ERROR(Check(LocateOnHost(question_.path), question_.path));
        return OpenLocated(question_.path);
      case FileQuestionKind::kDirectory:
      case FileQuestionKind::kUnlinkedDirectory:
        return Directory();
      case FileQuestionKind::kSocket:
        RETURN_IF_ERROR(OpenInRoot(question_.path, kLocateFlags | O_NOFOLLOW));
        if (fstat(answer_.fd.get(), &answer_.file) != 0) return ErrnoError(errno, question_.path);
        JudgeFileSystem();
        if (S_ISSOCK(answer_.file.st_mode)) return absl::OkStatus();
        return absl::FailedPreconditionError(absl::StrCat(question_.path, " is not a socket"));
      case FileQuestionKind::kHolds:
        Holds();
        return absl::OkStatus();
      case FileQuestionKind::kProcText:
        return ProcText();
      case FileQuestionKind::kStatus:
        return fstat(fd_, &answer_.file) == 0 ? absl::OkStatus() : ErrnoError(errno, "fstat");
      case FileQuestionKind::kRead:
        return Read();
      case FileQuestionKind::kCopy:
        return Copy();
      case FileQuestionKind::kMappedFiles:
        return MappedFiles();
      case FileQuestionKind::kMemory:
        return Memory();
    }
    return absl::InvalidArgumentError("no such question");
  }

  absl::Status Root() {
    const std::string directory = absl::StrCat(question_.proc_root, "/", question_.pid);
    answer_.fd = UniqueFd(open(absl::StrCat(directory, "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!answer_.fd.valid()) return ErrnoError(errno, directory);
    if (fstat(answer_.fd.get(), &answer_.file) != 0) answer_.file = {};
    struct stat status {};
    if (stat(directory.c_str(), &status) == 0) answer_.owner = status.st_uid;
    if (stat((directory + "/ns/mnt").c_str(), &status) == 0) answer_.mount_namespace = status.st_ino;
    return absl::OkStatus();
  }

  absl::Status Directory() {
    const bool unlinked = question_.kind == FileQuestionKind::kUnlinkedDirectory;
    const absl::Status opened =
        OpenInRoot(question_.path, kLocateFlags | O_DIRECTORY, unlinked ? RESOLVE_NO_SYMLINKS : 0);
    if (unlinked && (open_error_ == ELOOP || open_error_ == ENOTDIR)) {
      return absl::FailedPreconditionError(absl::StrCat(question_.path, " is no folder, or a link to one"));
    }
    RETURN_IF_ERROR(opened);
    if (fstat(answer_.fd.get(), &answer_.file) != 0) return ErrnoError(errno, question_.path);
    JudgeFileSystem();
    return absl::OkStatus();
  }

  absl::Status OpenInRoot(absl::string_view path, uint64_t flags, uint64_t extra_resolve = 0) {
    if (fd_ < 0) {
      return absl::NotFoundError(
          absl::StrCat(path, ": the root directory of process ", question_.pid, " can't be reached"));
    }
    open_how how{};
    how.flags = flags;
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | extra_resolve;
    answer_.fd = UniqueFd(static_cast<int>(syscall(SYS_openat2, fd_, std::string(path).c_str(), &how, sizeof how)));
    open_error_ = answer_.fd.valid() ? 0 : errno;
    return answer_.fd.valid() ? absl::OkStatus() : ErrnoError(open_error_, path);
  }

  // The mounts are those of the host's first process: our own may be those of a service, with a /tmp and a /home of its
  // own. Our own mounts are used where that process can't be looked at, or has no such file. In a container with
  // processes of its own the first of them is a target like others.
  UniqueFd LocateOnHost(const std::string& path) const {
    UniqueFd root;
    if (question_.proc_root != "/proc" || OwnPidNamespaceInode() == 0U) {
      root = UniqueFd(open(absl::StrCat(question_.proc_root, "/1/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
    if (root.valid()) {
      open_how how{};
      how.flags = kLocateFlags;
      how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
      UniqueFd file(static_cast<int>(syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
      if (file.valid()) return file;
    }
    return UniqueFd(open(path.c_str(), static_cast<int>(kLocateFlags)));
  }

  // `located` was opened with kLocateFlags; a regular file behind it may be opened by OpenLocated.
  absl::Status Check(UniqueFd located, absl::string_view path) {
    answer_.fd = std::move(located);
    if (!answer_.fd.valid() || fstat(answer_.fd.get(), &answer_.file) != 0) return ErrnoError(errno, path);
    if (S_ISREG(answer_.file.st_mode)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  }

  absl::Status Locate(absl::string_view path, uint64_t extra_flags) {
    RETURN_IF_ERROR(OpenInRoot(path, kLocateFlags | extra_flags));
    return Check(std::move(answer_.fd), path);
  }

  // The type of the file system; 0: it does not say.
  uint64_t JudgeFileSystem() {
    struct statfs file_system {};
    if (fstatfs(answer_.fd.get(), &file_system) != 0) {
      answer_.may_wait = answer_.on_fuse = true;
      return 0;
    }
    const auto type = static_cast<uint64_t>(static_cast<uint32_t>(file_system.f_type));
    answer_.on_overlay = type == OVERLAYFS_SUPER_MAGIC;
    answer_.on_fuse = type == FUSE_SUPER_MAGIC;
    answer_.may_wait = !IsLocal(type);
    if (answer_.on_overlay) JudgeOverlay();
    return type;
  }

  void JudgeOverlay() {
    if (question_.kind == FileQuestionKind::kHost) {
      answer_.may_wait = false;
      return;
    }
    // A user may have a hundred thousand mounts, whose list takes long. That of the host's mounts is as long as root
    // has made it.
    answer_.may_wait = true;
    if (!MountsAreOfHost(question_)) return;
    const std::optional<std::string> options = MountOptions(question_, answer_.fd.get());
    // Asked again: a process can leave the host's mounts for those of a user, and not come back.
    answer_.may_wait = !options || !MountsAreOfHost(question_);
    answer_.metacopy = options && CopiesNoData(*options);
  }

  absl::Status OpenLocated(absl::string_view path) {
    if (IsOfKernel(JudgeFileSystem())) {
      return absl::FailedPreconditionError(absl::StrCat(path, " is a file of the kernel's own"));
    }
    if (answer_.may_wait) return absl::OkStatus();
    // The same inode, whatever stands at its path by now.
    answer_.fd = UniqueFd(open(absl::StrCat("/proc/self/fd/", answer_.fd.get()).c_str(), kReadFlags));
    return answer_.fd.valid() ? absl::OkStatus() : ErrnoError(errno, path);
  }

  absl::Status Mapping() {
    const absl::string_view path = WithoutDeletedMark(question_.path);
    const absl::Status by_path = Locate(path, 0);
    // Device numbers are not compared here: stacked file systems (overlayfs, btrfs) report other ones in maps than in
    // stat.
    if (by_path.ok() && answer_.file.st_ino == question_.inode) return OpenLocated(path);

    // The file was deleted, replaced, or lies in a mount that the path does not reach: the kernel still has it.
    const std::string map_file =
        absl::StrFormat("%s/%u/map_files/%x-%x", question_.proc_root, question_.pid, question_.start, question_.end);
    UniqueFd mapped(open(map_file.c_str(), static_cast<int>(kLocateFlags)));
    if (mapped.valid()) {
      RETURN_IF_ERROR(Check(std::move(mapped), question_.path));
      return OpenLocated(question_.path);
    }

    // The process is gone before we could look. On the host the same path may be the same file; both numbers must
    // agree.
    UniqueFd host = LocateOnHost(std::string(path));
    if (host.valid() && Check(std::move(host), path).ok() && answer_.file.st_ino == question_.inode &&
        answer_.file.st_dev == question_.device) {
      return OpenLocated(path);
    }
    RETURN_IF_ERROR(by_path);
    return absl::NotFoundError(absl::StrCat(path, " was replaced after process ", question_.pid, " mapped it"));
  }

  absl::Status RuntimeFile() {
    RETURN_IF_ERROR(Locate(question_.path, O_NOFOLLOW));
    if (answer_.file.st_uid != 0 && question_.owner.has_value() && answer_.file.st_uid != *question_.owner) {
      return absl::PermissionDeniedError(absl::StrCat(question_.path, " belongs to user ", answer_.file.st_uid,
                                                      ", process ", question_.pid, " runs as ", *question_.owner));
    }
    // Where the kernel lets it (fs.protected_hardlinks), a user gives a file of root a name of its own choice.
    if (answer_.file.st_uid == 0 && answer_.file.st_nlink > 1 && question_.owner != 0U) {
      return absl::PermissionDeniedError(
          absl::StrCat(question_.path, " belongs to root and has another name elsewhere"));
    }
    return OpenLocated(question_.path);
  }

  void Holds() {
    const auto say = [this](OpenFileState state) { answer_.state = static_cast<uint8_t>(state); };
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(
        opendir(absl::StrCat(question_.proc_root, "/", question_.pid, "/fd").c_str()), closedir);
    if (directory == nullptr) return say(OpenFileState::kUnknown);
    const auto is_it = [&](const char* name) {
      struct stat status {};
      return fstatat(dirfd(directory.get()), name, &status, 0) == 0 && status.st_dev == question_.device &&
             status.st_ino == question_.inode;
    };
    answer_.descriptor = question_.descriptor;
    if (question_.descriptor >= 0 && is_it(absl::StrCat(question_.descriptor).c_str())) {
      return say(OpenFileState::kOpen);
    }
    answer_.descriptor = -1;
    bool any = false;
    for (int seen = 0; seen < kMaxDescriptors; ++seen) {
      const dirent* entry = readdir(directory.get());
      if (entry == nullptr) return say(any ? OpenFileState::kNotOpen : OpenFileState::kUnknown);
      if (entry->d_name[0] == '.') continue;
      any = true;
      if (!is_it(entry->d_name)) continue;
      if (!absl::SimpleAtoi(entry->d_name, &answer_.descriptor)) answer_.descriptor = -1;
      return say(OpenFileState::kOpen);
    }
    say(OpenFileState::kUnknown);
  }

  absl::Status ProcText() {
    ASSIGN_OR_RETURN(
        answer_.text,
        ReadWholeFile(absl::StrCat(question_.proc_root, "/", question_.pid, "/", question_.path), question_.bytes));
    return absl::OkStatus();
  }

  absl::Status Read() {
    const UniqueFd file(open(absl::StrCat("/proc/self/fd/", fd_).c_str(), kReadFlags));
    if (!file.valid()) return ErrnoError(errno, "open");
    answer_.text.resize(question_.bytes);
    ASSIGN_OR_RETURN(const size_t got,
                     ReadAt(file.get(), question_.offset, std::as_writable_bytes(std::span(answer_.text))));
    answer_.text.resize(got);
    return absl::OkStatus();
  }

  absl::Status Copy() {
    const UniqueFd file(open(absl::StrCat("/proc/self/fd/", fd_).c_str(), kReadFlags));
    if (!file.valid()) return ErrnoError(errno, "open");
    answer_.fd = UniqueFd(memfd_create("clrsampler-copy", MFD_CLOEXEC));
    if (!answer_.fd.valid()) return ErrnoError(errno, "memfd_create");
    std::vector<std::byte> buffer(1 << 20);
    uint64_t done = 0;
    while (done < question_.bytes) {
      ASSIGN_OR_RETURN(
          const size_t got,
          ReadAt(file.get(), done, std::span(buffer).first(std::min<uint64_t>(buffer.size(), question_.bytes - done))));
      if (got == 0) break;
      RETURN_IF_ERROR(WriteAll(answer_.fd.get(), absl::string_view(reinterpret_cast<const char*>(buffer.data()), got)));
      done += got;
    }
    // The file claims this size. Bytes that it lacks read as zeroes, as behind a file that shrinks while it is mapped.
    if (ftruncate(answer_.fd.get(), static_cast<off_t>(question_.bytes)) != 0) return ErrnoError(errno, "ftruncate");
    return absl::OkStatus();
  }

  absl::Status MappedFiles() {
    const std::string process = absl::StrCat(question_.proc_root, "/", question_.pid);
    ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(process + "/maps", question_.bytes));
    std::set<uint32_t> judged;
    for (const MapsLine& line : ParseMaps(text, /*executable_only=*/false).lines) {
      // File systems that lie on no disk have devices 0:N.
      if (line.inode == 0 || line.device_major != 0 || !judged.insert(line.device_minor).second) {
        continue;
      }
      answer_.fd = UniqueFd(open(absl::StrFormat("%s/map_files/%x-%x", process, line.start, line.end).c_str(),
                                 static_cast<int>(kLocateFlags)));
      if (!answer_.fd.valid()) {  // it takes more rights than ours, or the mapping is gone
        answer_.fd = UniqueFd(open(absl::StrCat(process, "/root", line.path).c_str(), static_cast<int>(kLocateFlags)));
      }
      if (!answer_.fd.valid()) continue;
      JudgeFileSystem();
      if (answer_.may_wait) break;
    }
    answer_.fd.reset();
    return absl::OkStatus();
  }

  absl::Status Memory() {
    answer_.text.resize(question_.bytes);
    ASSIGN_OR_RETURN(const size_t got, ReadAt(fd_, question_.start, std::as_writable_bytes(std::span(answer_.text))));
    return got == question_.bytes ? absl::OkStatus() : absl::OutOfRangeError("not all of it is there");
  }

  const FileQuestion& question_;
  const int fd_;
  int open_error_ = 0;  // of OpenInRoot
  FileAnswer answer_;
};

}  // namespace

FileAnswer AnswerFileQuestion(const FileQuestion& question, int fd) { return Answerer(question, fd).Answer(); }

}  // namespace clrsampler
