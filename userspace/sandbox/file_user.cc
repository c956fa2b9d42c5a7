#include "sandbox/file_user.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "os/unique_fd.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr char kAccount[] = "clrsampler";
// Between the last id that SSSD maps (2,000,200,000) and the first that systemd keeps for foreign images.
constexpr uid_t kWithoutAccount = 2'100'009'404;
constexpr mode_t kMode = 0750;

bool IsOurs(absl::string_view folder) {
  for (const absl::string_view own : {"/var/lib/clrsampler", "/var/cache/clrsampler", "/run/clrsampler"}) {
    if (folder == own || absl::StartsWith(folder, absl::StrCat(own, "/"))) return true;
  }
  return false;
}

absl::Status GiveFiles(int folder, FileUser user) {
  const int own = fcntl(folder, F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(own < 0 ? nullptr : fdopendir(own), closedir);
  if (entries == nullptr) {
    if (own >= 0) close(own);
    return ErrnoError(errno, "reading the folder");
  }
  while (const dirent* entry = readdir(entries.get())) {
    const UniqueFd file(openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat status {};
    if (!file.valid() || fstat(file.get(), &status) != 0) continue;
    // A second name of a file may be anywhere.
    if (!S_ISREG(status.st_mode) || status.st_nlink != 1 || status.st_uid != geteuid()) continue;
    if (fchown(file.get(), user.uid, user.gid) != 0) return ErrnoError(errno, entry->d_name);
  }
  return absl::OkStatus();
}

}  // namespace

FileUser AgentFileUser() {
  // Not getpwnam(3), which may ask a directory service, and can't in a static program.
  const std::unique_ptr<FILE, int (*)(FILE*)> accounts(fopen("/etc/passwd", "re"), fclose);
  while (const passwd* account = accounts == nullptr ? nullptr : fgetpwent(accounts.get())) {
    if (absl::string_view(account->pw_name) == kAccount && account->pw_uid != 0) {
      return {account->pw_uid, account->pw_gid};
    }
  }
  return {kWithoutAccount, kWithoutAccount};
}

absl::Status HandOver(const std::string& folder, FileUser user) {
  const bool made = mkdir(folder.c_str(), kMode) == 0;
  if (!made && errno != EEXIST) return ErrnoError(errno, folder);
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || fstat(fd.get(), &status) != 0) return ErrnoError(errno, folder);
  if (status.st_uid == user.uid) return GiveFiles(fd.get(), user);
  const bool root_only = status.st_uid == geteuid() && (status.st_mode & 022) == 0;
  if (!root_only || !(made || IsOurs(folder))) {
    return absl::FailedPreconditionError(absl::StrCat(folder, " is another user's folder"));
  }
  RETURN_IF_ERROR(GiveFiles(fd.get(), user));
  if (fchown(fd.get(), user.uid, user.gid) != 0) return ErrnoError(errno, folder);
  return absl::OkStatus();
}

}  // namespace clrsampler
