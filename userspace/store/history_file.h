// The file of a store: made, claimed, opened, set aside. Its content is not its business.
//
// It names methods and programs of other users: mode 0600, and only a regular file of our own user is opened, never
// through a symbolic link. One process at a time: PATH.lock is locked as long as this lives.
#ifndef CLRSAMPLER_STORE_HISTORY_FILE_H_
#define CLRSAMPLER_STORE_HISTORY_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "os/unique_fd.h"
#include "store/sqlite.h"

namespace clrsampler {

class HistoryFile {
 public:
  // ABORTED: another process has it. The file itself may be missing; its folder may not.
  static absl::StatusOr<HistoryFile> Claim(const std::string& path);

  // A connection to write: of a whole file of ours, made where there is none, its schema up to date.
  // DATA_LOSS: it is damaged. FAILED_PRECONDITION: it is no store of ours, or of a newer version.
  absl::StatusOr<SqliteConnection> OpenForWriting() const;
  absl::StatusOr<SqliteConnection> OpenForReading() const;

  // Renames it to PATH.damaged-TIME, which is given back. A file that was set aside before goes, so that a disk that
  // damages its files is not filled with them. Connections must not be in use.
  absl::StatusOr<std::string> SetAside() const;

  uint64_t bytes() const { return file_bytes() + log_bytes(); }
  uint64_t file_bytes() const;
  uint64_t log_bytes() const;
  const std::string& path() const { return path_; }

 private:
  HistoryFile(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  absl::StatusOr<bool> Exists() const;
  absl::Status Make() const;

  std::string path_;  // of a folder without links
  UniqueFd lock_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_HISTORY_FILE_H_
