#include "clr/perf_map/lease_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kSuffix = ".lease";
constexpr absl::string_view kUnfinished = ".unfinished-";
constexpr size_t kMaxLeaseBytes = 64 << 10;
constexpr size_t kMaxLeases = 100'000;
constexpr unsigned kRenameNoReplace = 1;  // linux/fs.h, which does not go together with every libc

std::string NameOf(const LeaseRecord& record) {
  return absl::StrCat(record.target.tgid, "-", record.target.start_ticks, kSuffix);
}

UniqueFd OpenIn(int directory, const std::string& name, int flags) {
  return UniqueFd(openat(directory, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
}

absl::Status MakeDirectories(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (mkdir(path.substr(0, slash).c_str(), 0755) != 0 && errno != EEXIST) {
      return ErrnoError(errno, path.substr(0, slash));
    }
  }
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return ErrnoError(errno, path);
  return absl::OkStatus();
}

}  // namespace

absl::Status Lease::AddFile(const LeasedFile& file) {
  record_.files.push_back(file);
  const absl::Status written = WriteAll(fd_.get(), EncodeLeasedFile(file));
  if (!written.ok()) return written;
  if (fdatasync(fd_.get()) != 0) return ErrnoError(errno, name_);
  return absl::OkStatus();
}

void Lease::Remove() {
  if (fd_.valid()) unlinkat(directory_->get(), name_.c_str(), 0);
  fd_.reset();
}

absl::StatusOr<LeaseStore> LeaseStore::Open(const std::string& directory, bool create) {
  if (create) {
    if (const absl::Status made = MakeDirectories(directory); !made.ok()) return made;
  }
  UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, directory);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return ErrnoError(errno, directory);
  if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return WithHint(absl::PermissionDeniedError(absl::StrCat(directory, " can be written by others")),
                    absl::StrCat("remove it, or: chown root ", directory, " && chmod 700 ", directory));
  }
  return LeaseStore(std::move(fd));
}

absl::StatusOr<Lease> LeaseStore::Create(const LeaseRecord& record) {
  const std::string name = NameOf(record);
  const std::string unfinished = absl::StrCat(kUnfinished, getpid(), "-", name);
  const int directory = directory_->get();
  unlinkat(directory, unfinished.c_str(), 0);  // of an earlier process with our pid
  UniqueFd fd = OpenIn(directory, unfinished, O_RDWR | O_CREAT | O_EXCL);
  if (!fd.valid()) return ErrnoError(errno, name);
  const auto fail = [&](absl::Status status) {
    unlinkat(directory, unfinished.c_str(), 0);
    return status;
  };
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return fail(ErrnoError(errno, name));
  if (const absl::Status written = WriteAll(fd.get(), EncodeLeaseRecord(record)); !written.ok()) return fail(written);
  if (fsync(fd.get()) != 0) return fail(ErrnoError(errno, name));
  if (syscall(SYS_renameat2, directory, unfinished.c_str(), directory, name.c_str(), kRenameNoReplace) != 0) {
    return fail(errno == EEXIST ? absl::AlreadyExistsError(absl::StrCat("there is a lease ", name))
                                : ErrnoError(errno, name));
  }
  Lease lease(directory_, name, std::move(fd), record);
  if (fsync(directory) != 0) {
    const absl::Status status = ErrnoError(errno, name);
    lease.Remove();
    return status;
  }
  return lease;
}

std::vector<std::string> LeaseStore::Names() const {
  std::vector<std::string> names;
  // This is a descriptor of its own: a shared one would have the position of the last reading.
  const int fd = openat(directory_->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = fd < 0 ? nullptr : fdopendir(fd);
  if (entries == nullptr) {
    if (fd >= 0) close(fd);
    return names;
  }
  while (const dirent* entry = readdir(entries)) {
    const absl::string_view name = entry->d_name;
    if (absl::EndsWith(name, kSuffix) && names.size() < kMaxLeases) names.emplace_back(name);
  }
  closedir(entries);
  return names;
}

std::vector<Lease> LeaseStore::TakeDead() {
  std::vector<Lease> leases;
  for (std::string& name : Names()) {
    UniqueFd fd = OpenIn(directory_->get(), name, O_RDWR | O_APPEND);
    // It is locked: its owner, or another repairer, is at work on it.
    if (!fd.valid() || flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;
    struct stat status {};
    if (fstat(fd.get(), &status) != 0 || status.st_nlink == 0) continue;  // repaired while we opened it
    const absl::StatusOr<std::string> text = ReadWholeFile(fd.get(), kMaxLeaseBytes);
    absl::StatusOr<LeaseRecord> record = text.ok() ? ParseLeaseRecord(*text) : text.status();
    if (!record.ok() || absl::StartsWith(name, kUnfinished)) {
      unlinkat(directory_->get(), name.c_str(), 0);
      continue;
    }
    leases.push_back(Lease(directory_, std::move(name), std::move(fd), *std::move(record)));
  }
  return leases;
}

bool LeaseStore::Has(uint32_t tgid) const {
  const std::vector<std::string> names = Names();
  const std::string prefix = absl::StrCat(tgid, "-");
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return absl::StartsWith(name, prefix); });
}

size_t LeaseStore::CountOf(uint32_t agent_pid, uint64_t agent_start_ticks) const {
  size_t count = 0;
  const std::string unfinished = absl::StrCat(kUnfinished, agent_pid, "-");
  for (const std::string& name : Names()) {
    if (absl::StartsWith(name, unfinished)) {  // killed before anything was in it
      ++count;
      continue;
    }
    const UniqueFd fd = OpenIn(directory_->get(), name, O_RDONLY);
    const absl::StatusOr<std::string> text =
        fd.valid() ? ReadWholeFile(fd.get(), kMaxLeaseBytes) : absl::NotFoundError(name);
    const absl::StatusOr<LeaseRecord> record = text.ok() ? ParseLeaseRecord(*text) : text.status();
    count += record.ok() && record->agent_pid == agent_pid && record->agent_start_ticks == agent_start_ticks;
  }
  return count;
}

}  // namespace clrsampler
