#include "os/created_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

bool IsTrusted(uid_t user, const std::optional<FileOwner>& caller) {
  return user == 0 || user == geteuid() || (caller.has_value() && user == caller->user);
}

// Whether somebody else may put a name into this folder. Where single users have rights (ACLs), the group's bit is
// their bound, so that they count as well.
bool OthersMayWrite(const struct stat& folder, const std::optional<FileOwner>& caller) {
  const bool group_may = (folder.st_mode & S_IWGRP) != 0 && folder.st_gid != 0;
  return group_may || (folder.st_mode & (S_ISVTX | S_IWOTH)) != 0 || !IsTrusted(folder.st_uid, caller);
}

}  // namespace

absl::StatusOr<ResultPlace> FindResultPlace(const std::string& path, const std::optional<FileOwner>& caller) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  ResultPlace place{UniqueFd(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), path.substr(slash + 1)};
  struct stat state {};
  if (!place.folder.valid() || fstat(place.folder.get(), &state) != 0) return ErrnoError(errno, folder);
  place.guarded = OthersMayWrite(state, caller);
  return place;
}

absl::Status CheckGuardedResult(const struct stat& file, const std::optional<FileOwner>& caller) {
  const auto refused = [](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat(why, ", in a folder to which other users may write"));
  };
  if (S_ISLNK(file.st_mode)) return refused("it is a link");
  if (!S_ISREG(file.st_mode)) return refused("it is no regular file");
  if (!IsTrusted(file.st_uid, caller)) {
    return refused(absl::StrCat("it belongs to another user (uid ", file.st_uid, ")"));
  }
  if (file.st_nlink > 1) return refused("it has another name elsewhere");
  return absl::OkStatus();
}

std::optional<FileOwner> CallerBySudo() {
  const char* const user = geteuid() == 0 ? getenv("SUDO_UID") : nullptr;
  const char* const group = getenv("SUDO_GID");
  uint32_t uid = 0;
  uint32_t gid = 0;
  if (user == nullptr || group == nullptr || !absl::SimpleAtoi(user, &uid) || !absl::SimpleAtoi(group, &gid)) {
    return std::nullopt;
  }
  return FileOwner{uid, gid};
}

NewFile::NewFile(UniqueFd folder, std::string name, int file) : folder_(std::move(folder)), name_(std::move(name)) {
  struct stat state {};
  if (fstat(file, &state) != 0) folder_.reset();
  device_ = state.st_dev;
  inode_ = state.st_ino;
}

NewFile::~NewFile() {
  struct stat state {};
  if (!folder_.valid() || fstatat(folder_.get(), name_.c_str(), &state, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (state.st_dev == device_ && state.st_ino == inode_) unlinkat(folder_.get(), name_.c_str(), 0);
}

absl::StatusOr<UniqueFd> OpenCreated(const std::string& path, std::optional<FileOwner> caller, bool secret) {
  std::unique_ptr<NewFile> made;
  absl::StatusOr<UniqueFd> opened = OpenCreated(path, caller, secret, made);
  if (made != nullptr) made->Keep();
  return opened;
}

absl::StatusOr<UniqueFd> OpenCreated(const std::string& path, std::optional<FileOwner> caller, bool secret,
                                     std::unique_ptr<NewFile>& made) {
  ASSIGN_OR_RETURN(ResultPlace place, FindResultPlace(path, caller));
  auto& [folder, name, guarded] = place;
  const bool root = geteuid() == 0;
  UniqueFd created(openat(folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                          root || secret ? 0600 : 0644));
  if (created.valid()) {
    // Without CAP_CHOWN the file stays root's.
    if (root && caller.has_value()) (void)!fchown(created.get(), caller->user, caller->group);
    made = std::make_unique<NewFile>(std::move(folder), name, created.get());
    return created;
  }
  if (errno != EEXIST) return ErrnoError(errno, path);
  // O_NONBLOCK: a pipe that nobody reads must not block us. A pipe is refused below where we did not choose the name.
  const int flags = O_WRONLY | O_CLOEXEC | (guarded ? O_NOFOLLOW | O_NONBLOCK : O_CREAT);
  UniqueFd found(openat(folder.get(), name.c_str(), flags, 0600));
  if (!found.valid()) {
    if (guarded && errno == ELOOP) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": it is a link in a folder to which other users may write"));
    }
    return ErrnoError(errno, path);
  }
  if (guarded) {
    struct stat state {};
    if (fstat(found.get(), &state) != 0) return ErrnoError(errno, path);
    RETURN_IF_ERROR(Annotate(CheckGuardedResult(state, caller), path));
  }
  return found;
}

}  // namespace clrsampler
