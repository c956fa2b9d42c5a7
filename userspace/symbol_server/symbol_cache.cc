#include "symbol_server/symbol_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "os/digest.h"
#include "sandbox/file_user.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kMissingSuffix = ".missing";
constexpr absl::string_view kWorkPrefix = "work-";

std::string MissingName(const SymbolFileKey& key, uint64_t servers) {
  // A digest: a process chooses the name, and must not be able to choose the entry of another one.
  const std::array<uint8_t, 32> request = Sha256(RequestText(key));
  const absl::string_view half(reinterpret_cast<const char*>(request.data()), request.size() / 2);
  return absl::StrFormat("%s.%016x-%s%s", CacheFileName(key), servers, absl::BytesToHexString(half), kMissingSuffix);
}

std::string WorkName(pid_t pid) { return absl::StrCat(kWorkPrefix, pid); }

}  // namespace

std::string SymbolCache::DefaultFolder() {
  if (geteuid() == 0) return "/var/cache/clrsampler/symbols";
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return absl::StrCat(cache, "/clrsampler/symbols");
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return absl::StrCat(home, "/.cache/clrsampler/symbols");
  return "";
}

absl::StatusOr<SymbolCache> SymbolCache::Open(const std::string& folder, Options options) {
  if (folder.empty()) return absl::InvalidArgumentError("no folder for symbol files is known: HOME is not set");
  std::error_code error;
  const std::filesystem::path path(folder);
  std::filesystem::create_directories(path.parent_path(), error);
  if (!error && mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) error = {errno, std::generic_category()};
  if (error) return ErrnoError(error.value(), folder);
  SymbolCache cache;
  cache.fd_ = UniqueFd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!cache.fd_.valid() || fstat(cache.fd_.get(), &status) != 0) return ErrnoError(errno, folder);
  // A user who may write here may give functions false names.
  const bool ours = status.st_uid == geteuid() || (geteuid() == 0 && status.st_uid == AgentFileUser().uid);
  if (!ours || (status.st_mode & 022) != 0) {
    return WithHint(absl::PermissionDeniedError(absl::StrCat(folder, " can be written to by other users")),
                    absl::StrCat("chmod 700 and chown it to the user that runs clrsampler, or choose another folder"));
  }
  cache.folder_ = folder;
  cache.options_ = std::move(options);
  if (!cache.options_.now) cache.options_.now = [] { return static_cast<int64_t>(std::time(nullptr)); };
  cache.Evict();
  return cache;
}

std::string SymbolCache::PathOf(absl::string_view name) const { return absl::StrCat(folder_, "/", name); }

std::optional<UniqueFd> SymbolCache::Find(const SymbolFileKey& key) const {
  UniqueFd fd(openat(fd_.get(), CacheFileName(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!fd.valid() || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const timespec times[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(options_.now()), 0}};
  futimens(fd.get(), times);  // on a read-only file system the order of eviction does not matter
  return fd;
}

absl::StatusOr<UniqueFd> SymbolCache::BeginFile(pid_t pid) const {
  DropFile(pid);
  const std::string name = WorkName(pid);
  UniqueFd file(openat(fd_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return ErrnoError(errno, PathOf(name));
  return file;
}

absl::StatusOr<UniqueFd> SymbolCache::OpenReceived(pid_t pid) const {
  const std::string name = WorkName(pid);
  UniqueFd file(openat(fd_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid()) return ErrnoError(errno, PathOf(name));
  // The kernel gives a read lease only where nobody has the file open, or mapped, for writing. File systems without
  // leases leave that open. A file there is read within bounds and checked like every foreign file.
  if (fcntl(file.get(), F_SETLEASE, F_RDLCK) == 0) {
    fcntl(file.get(), F_SETLEASE, F_UNLCK);
  } else if (errno == EAGAIN) {
    return absl::FailedPreconditionError("the process that received it keeps it open");
  }
  return file;
}

absl::Status SymbolCache::Adopt(pid_t pid, const SymbolFileKey& key) {
  const std::string work = WorkName(pid), name = CacheFileName(key);
  const timespec times[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(options_.now()), 0}};
  utimensat(fd_.get(), work.c_str(), times, AT_SYMLINK_NOFOLLOW);
  if (renameat(fd_.get(), work.c_str(), fd_.get(), name.c_str()) != 0) return ErrnoError(errno, PathOf(name));
  Evict();
  return absl::OkStatus();
}

void SymbolCache::DropFile(pid_t pid) const { unlinkat(fd_.get(), WorkName(pid).c_str(), 0); }

void SymbolCache::Discard(const SymbolFileKey& key) { unlinkat(fd_.get(), CacheFileName(key).c_str(), 0); }

uint64_t SymbolCache::NumberOf(std::span<const SymbolServerUrl> servers) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: the same in every run, as a hash for tables need not be
  const auto add = [&hash](absl::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  };
  for (const SymbolServerUrl& server : servers) {
    add(absl::StrCat(server.base, "\n", server.debuginfod ? 1 : 0, server.ssqp ? 1 : 0, "\n"));
  }
  return hash;
}

bool SymbolCache::IsMissing(const SymbolFileKey& key, uint64_t servers) const {
  struct stat status {};
  if (fstatat(fd_.get(), MissingName(key, servers).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  const int64_t age = options_.now() - status.st_mtim.tv_sec;
  return age >= 0 && age < options_.missing_seconds;
}

void SymbolCache::NoteMissing(const SymbolFileKey& key, uint64_t servers) {
  const std::string name = MissingName(key, servers);
  const UniqueFd fd(openat(fd_.get(), name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd.valid()) return;  // asked again by the next run
  const timespec times[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(options_.now()), 0}};
  futimens(fd.get(), times);
}

void SymbolCache::Evict() {
  const int own = fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(own < 0 ? nullptr : fdopendir(own), closedir);
  if (folder == nullptr) {
    if (own >= 0) close(own);
    return;
  }
  rewinddir(folder.get());
  const int64_t now = options_.now();
  std::vector<std::tuple<int64_t, std::string, uint64_t>> files;  // last use, name, bytes
  uint64_t all_bytes = 0;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    struct stat status {};
    if (fstatat(fd_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const int64_t age = now - status.st_mtim.tv_sec;
    if (absl::EndsWith(name, kMissingSuffix)) {
      if (age >= options_.missing_seconds) unlinkat(fd_.get(), name.c_str(), 0);
    } else if (absl::StartsWith(name, kWorkPrefix)) {
      std::error_code ignored;  // a folder, of versions before 0.10
      if (age >= options_.abandoned_seconds) std::filesystem::remove_all(PathOf(name), ignored);
    } else if (IsCacheFileName(name) && S_ISREG(status.st_mode)) {  // what is not ours is left alone
      const auto bytes = static_cast<uint64_t>(status.st_size);
      files.emplace_back(status.st_mtim.tv_sec, name, bytes);
      all_bytes += bytes;
    }
  }
  std::sort(files.begin(), files.end());
  for (const auto& [used, name, bytes] : files) {
    if (all_bytes <= options_.max_bytes) break;
    if (unlinkat(fd_.get(), name.c_str(), 0) == 0) all_bytes -= bytes;
  }
}

}  // namespace clrsampler
