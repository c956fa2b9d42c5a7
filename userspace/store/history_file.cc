#include "store/history_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "os/file_io.h"
#include "status/status.h"
#include "store/history_schema.h"

namespace clrsampler {
namespace {

constexpr mode_t kMode = 0600;
// A file up to this size is read as a whole when it is opened, to know that it is sound: 0.1 s. Damage in a larger one
// shows when it is met.
constexpr uint64_t kMaxCheckedBytes = uint64_t{64} << 20;
constexpr absl::string_view kDamaged = ".damaged-";
constexpr const char* kCompanions[] = {"-wal", "-shm", "-journal"};

absl::Status NotOurs(const std::string& path, absl::string_view why) {
  return WithHint(absl::FailedPreconditionError(absl::StrCat(path, why)), "name another file for the history");
}

// Whether a file is ours, going by its first bytes. A foreign file must not be renamed, even if the command line names
// it. A file that a crash of the machine has filled with zeros was ours.
absl::StatusOr<bool> LooksLikeOurs(int fd) {
  std::array<std::byte, 100> header{};
  RETURN_IF_ERROR(ReadAt(fd, 0, header).status());
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(header[i]); };
  const uint32_t application = byte(68) << 24 | byte(69) << 16 | byte(70) << 8 | byte(71);
  const bool zeros = std::all_of(header.begin(), header.end(), [](std::byte b) { return b == std::byte{0}; });
  return application == kHistoryApplicationId || zeros;
}

}  // namespace

absl::StatusOr<HistoryFile> HistoryFile::Claim(const std::string& path) {
  const std::filesystem::path given(path);
  if (!given.has_filename()) return absl::InvalidArgumentError(absl::StrCat("'", path, "' names no file"));
  const std::string folder = given.has_parent_path() ? given.parent_path().string() : ".";
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(folder.c_str(), nullptr), &std::free);
  if (real == nullptr) return WithHint(ErrnoError(errno, folder), "make the folder of the history first");
  std::string file = (std::filesystem::path(real.get()) / given.filename()).string();

  const std::string lock_path = absl::StrCat(file, ".lock");
  UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kMode));
  if (!lock.valid()) {
    const int error_number = errno;
    absl::Status status = ErrnoError(error_number, lock_path);
    if (error_number == ELOOP) return NotOurs(lock_path, " is a symbolic link");
    return WithHint(std::move(status), "the history's folder must be writable for this user");
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoError(errno, lock_path);
    return WithHint(absl::AbortedError(absl::StrCat("another process writes ", file)),
                    "stop it, or name another file for the history");
  }
  return HistoryFile(std::move(file), std::move(lock));
}

absl::StatusOr<bool> HistoryFile::Exists() const {
  // Non-blocking: a pipe that somebody put there must not hold us.
  const UniqueFd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) {
    const int error_number = errno;
    if (error_number == ENOENT) return false;
    if (error_number == ELOOP) return NotOurs(path_, " is a symbolic link");
    return ErrnoError(error_number, path_);
  }
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoError(errno, path_);
  if (!S_ISREG(info.st_mode)) return NotOurs(path_, " is not a file");
  if (info.st_uid != geteuid()) return NotOurs(path_, absl::StrCat(" belongs to another user (", info.st_uid, ")"));
  if ((info.st_mode & 0777 & ~kMode) != 0 && fchmod(fd.get(), kMode) != 0) return ErrnoError(errno, path_);
  if (info.st_size == 0) return false;
  ASSIGN_OR_RETURN(const bool ours, LooksLikeOurs(fd.get()));
  if (!ours) return NotOurs(path_, " is no history of clrsampler");
  return true;
}

// The file is made under another name: whatever kills us, a file with the right name is whole.
absl::Status HistoryFile::Make() const {
  const std::string unfinished = absl::StrCat(path_, ".new");
  unlink(unfinished.c_str());
  for (const char* companion : kCompanions) unlink(absl::StrCat(unfinished, companion).c_str());
  for (const char* companion : kCompanions) unlink(absl::StrCat(path_, companion).c_str());
  {
    const UniqueFd made(open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode));
    if (!made.valid()) return ErrnoError(errno, unfinished);
  }
  {
    ASSIGN_OR_RETURN(SqliteConnection connection, SqliteConnection::Open(unfinished, SQLITE_OPEN_READWRITE));
    RETURN_IF_ERROR(connection.Execute(absl::StrCat("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = ",
                                                    kHistoryApplicationId, "; PRAGMA journal_mode = WAL")));
    RETURN_IF_ERROR(Migrate(connection));
  }
  if (rename(unfinished.c_str(), path_.c_str()) != 0) return ErrnoError(errno, path_);
  return absl::OkStatus();
}

absl::StatusOr<SqliteConnection> HistoryFile::OpenForWriting() const {
  ASSIGN_OR_RETURN(const bool exists, Exists());
  if (!exists) RETURN_IF_ERROR(Make());
  absl::StatusOr<SqliteConnection> connection = SqliteConnection::Open(path_, SQLITE_OPEN_READWRITE);
  if (!connection.ok()) return connection.status();
  connection->SetBusyTimeout(1000);
  // NORMAL: the log is written to disk before pages move from it to the file. A crash of the machine may take the
  // newest windows, but never older ones. A crash of the program takes nothing that was committed.
  RETURN_IF_ERROR(connection->Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"));
  RETURN_IF_ERROR(Migrate(*connection));
  RETURN_IF_ERROR(CheckSchema(*connection));
  if (bytes() <= kMaxCheckedBytes) {
    ASSIGN_OR_RETURN(SqliteStatement check, connection->Prepare("PRAGMA quick_check(1)"));
    SqliteRows rows = check.Run();
    ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row || rows.Text(0) != "ok") return absl::DataLossError(absl::StrCat(path_, ": ", rows.Text(0)));
  }
  return connection;
}

absl::StatusOr<SqliteConnection> HistoryFile::OpenForReading() const {
  absl::StatusOr<SqliteConnection> connection = SqliteConnection::Open(path_, SQLITE_OPEN_READONLY);
  if (connection.ok()) connection->SetBusyTimeout(1000);
  return connection;
}

absl::StatusOr<std::string> HistoryFile::SetAside() const {
  const std::filesystem::path path(path_);
  const std::string prefix = absl::StrCat(path.filename().string(), kDamaged);
  std::error_code error;
  std::filesystem::directory_iterator entries(path.parent_path(), error), end;
  for (; !error && entries != end; entries.increment(error)) {
    if (entries->path().filename().string().starts_with(prefix)) unlink(entries->path().c_str());
  }
  const std::string aside =
      absl::StrCat(path_, kDamaged, absl::FormatTime("%Y%m%dT%H%M%SZ", absl::Now(), absl::UTCTimeZone()));
  if (rename(path_.c_str(), aside.c_str()) != 0) return ErrnoError(errno, path_);
  rename(absl::StrCat(path_, "-wal").c_str(), absl::StrCat(aside, "-wal").c_str());
  unlink(absl::StrCat(path_, "-shm").c_str());
  return aside;
}

uint64_t HistoryFile::file_bytes() const { return SizeOfFile(path_); }
uint64_t HistoryFile::log_bytes() const { return SizeOfFile(absl::StrCat(path_, "-wal")); }

}  // namespace clrsampler
