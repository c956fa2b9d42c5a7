#include "clr/inprocess/library_place.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "os/file_io.h"
#include "os/without_umask.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr char kLibraryName[] = "libclrsampler_profiler.so";
constexpr char kSocketName[] = "agent";
// More than the library takes: others may connect, too, and are turned away one after the other.
constexpr int kConnectionsThatWait = 64;
constexpr const char* kUsualFolders[] = {"/tmp", "/dev/shm", "/var/tmp"};
// Others enter and read, but get no list and change nothing. Everybody may connect to a socket. The peer's identity is
// checked there.
constexpr mode_t kFolderMode = 0711, kFileMode = 0644;

bool MayBeSaid(absl::string_view path) {
  for (const char c : path) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) return false;
  }
  return !path.empty() && path[0] == '/' && path.size() < 64;
}

absl::Status Refused(absl::string_view path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(path, " ", why));
}

// Nobody but root and the target's user can replace what these make there.
absl::Status CheckRights(const OpenedFile& folder, const TargetFiles& files, absl::string_view path) {
  const struct stat& status = folder.status;
  if (folder.may_wait) return Refused(path, "lies on a file system that may not answer");
  if (status.st_uid != 0 && files.owner() != status.st_uid) return Refused(path, "belongs to another user");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0) {
    return Refused(path, "can be changed by others and has no sticky bit");
  }
  return absl::OkStatus();
}

// The runtime resolves the path anew, so each folder on the way is judged, and none of them may be a link.
absl::StatusOr<OpenedFile> OpenFolder(const TargetFiles& files, absl::string_view folder) {
  ASSIGN_OR_RETURN(OpenedFile opened, files.OpenDirectory("/"));
  RETURN_IF_ERROR(CheckRights(opened, files, "/"));
  std::string path;
  for (const absl::string_view part : absl::StrSplit(folder, '/', absl::SkipEmpty())) {
    const std::string name(part);
    absl::StrAppend(&path, "/", name);
    if (name == "." || name == "..") return Refused(path, "is no folder, or a link to one");
    ASSIGN_OR_RETURN(opened, files.OpenUnlinkedDirectory(path));
    RETURN_IF_ERROR(CheckRights(opened, files, path));
  }
  return opened;
}

absl::Status CheckMount(const OpenedFile& folder, absl::string_view path) {
  struct statvfs system {};
  if (fstatvfs(folder.fd.get(), &system) != 0) return ErrnoError(errno, path);
  if ((system.f_flag & ST_NOEXEC) != 0) return Refused(path, "is mounted noexec");
  if ((system.f_flag & ST_RDONLY) != 0) return Refused(path, "is mounted read-only");
  return absl::OkStatus();
}

absl::StatusOr<std::string> RandomName() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    return ErrnoError(errno, "getrandom");
  }
  return absl::StrCat("clrsampler-", absl::Hex(number, absl::kZeroPad16));
}

}  // namespace

LibraryPlace::LibraryPlace(LibraryPlace&& other) noexcept
    : parent_(std::move(other.parent_)),
      folder_(std::move(other.folder_)),
      name_(std::exchange(other.name_, std::string())),
      has_library_(other.has_library_),
      has_socket_(other.has_socket_),
      listener_(std::move(other.listener_)),
      library_path_(std::move(other.library_path_)),
      socket_path_(std::move(other.socket_path_)) {}

absl::StatusOr<LibraryPlace> LibraryPlace::Make(const TargetFiles& files, absl::string_view preferred,
                                                absl::string_view library) {
  std::string reasons;
  std::vector<absl::string_view> folders(std::begin(kUsualFolders), std::end(kUsualFolders));
  if (MayBeSaid(preferred)) folders.insert(folders.begin(), preferred);
  for (const absl::string_view folder : folders) {
    absl::StatusOr<LibraryPlace> place = MakeIn(files, folder, library);
    if (place.ok()) return place;
    absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", place.status().message());
  }
  return absl::FailedPreconditionError(
      absl::StrCat("there is no folder for the library in what the process sees (", reasons, ")"));
}

absl::StatusOr<LibraryPlace> LibraryPlace::MakeIn(const TargetFiles& files, absl::string_view folder,
                                                  absl::string_view library) {
  ASSIGN_OR_RETURN(OpenedFile parent, OpenFolder(files, folder));
  RETURN_IF_ERROR(CheckMount(parent, folder));
  const WithoutUmask without_umask;
  LibraryPlace place;
  place.parent_ = std::move(parent.fd);
  RETURN_IF_ERROR(place.MakeFolder(folder));
  RETURN_IF_ERROR(place.WriteLibrary(library));
  RETURN_IF_ERROR(place.Listen());
  return place;
}

absl::Status LibraryPlace::MakeFolder(absl::string_view folder) {
  ASSIGN_OR_RETURN(std::string name, RandomName());
  const std::string path = absl::StrCat(folder, "/", name);
  if (mkdirat(parent_.get(), name.c_str(), kFolderMode) != 0) return ErrnoError(errno, path);
  name_ = std::move(name);
  open_how how{};
  how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV;  // the target may have mounted something over it meanwhile
  folder_ = UniqueFd(static_cast<int>(syscall(SYS_openat2, parent_.get(), name_.c_str(), &how, sizeof how)));
  struct stat status {};
  if (!folder_.valid() || fstat(folder_.get(), &status) != 0) return ErrnoError(errno, path);
  if (status.st_uid != geteuid() || (status.st_mode & 07777) != kFolderMode) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is another folder by now"));
  }
  library_path_ = absl::StrCat(path, "/", kLibraryName);
  socket_path_ = absl::StrCat(path, "/", kSocketName);
  return absl::OkStatus();
}

absl::Status LibraryPlace::WriteLibrary(absl::string_view library) {
  const UniqueFd file(
      openat(folder_.get(), kLibraryName, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!file.valid()) return ErrnoError(errno, library_path_);
  has_library_ = true;
  return Annotate(WriteAll(file.get(), library), library_path_);
}

absl::Status LibraryPlace::Listen() {
  listener_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener_.valid()) return ErrnoError(errno, "socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = absl::StrCat("/proc/self/fd/", folder_.get(), "/", kSocketName);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return ErrnoError(errno, socket_path_);
  }
  has_socket_ = true;
  return listen(listener_.get(), kConnectionsThatWait) == 0 ? absl::OkStatus() : ErrnoError(errno, socket_path_);
}

void LibraryPlace::Remove() {
  if (name_.empty()) return;
  if (has_library_) unlinkat(folder_.get(), kLibraryName, 0);
  if (has_socket_) unlinkat(folder_.get(), kSocketName, 0);
  unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR);
  name_.clear();
}

}  // namespace clrsampler
