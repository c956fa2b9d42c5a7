// SQLite as objects: a connection, prepared statements, rows, transactions. Nothing else of the project calls it.
//
// Errors: DATA_LOSS where the file is damaged. RESOURCE_EXHAUSTED where there is no room (disk, quota, size limit of
// the process). FAILED_PRECONDITION where the file can't be had (a link, a folder, no right). ABORTED where another
// connection has it locked, else UNKNOWN. The message names the file.
//
// Threads: a connection and what came from it on one thread at a time.
#ifndef CLRSAMPLER_STORE_SQLITE_H_
#define CLRSAMPLER_STORE_SQLITE_H_

#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// As an argument of a statement: numbers in SQLite are signed. A number that is too large becomes the largest one.
inline int64_t ToSigned(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
}

// The rows of a statement that runs. Its end lets go of what the statement holds.
class SqliteRows {
 public:
  SqliteRows(sqlite3_stmt* statement, int bound) : statement_(statement), bound_(bound) {}
  SqliteRows(const SqliteRows&) = delete;
  SqliteRows& operator=(const SqliteRows&) = delete;
  ~SqliteRows();

  // Whether there is a further row; call it before the first.
  absl::StatusOr<bool> Next();
  // A column of the current row. Bytes are good until the next call of Next.
  int64_t Number(int column) const { return sqlite3_column_int64(statement_, column); }
  std::span<const std::byte> Blob(int column) const;
  absl::string_view Text(int column) const;

 private:
  sqlite3_stmt* statement_;
  int bound_;  // result of binding the arguments
};

class SqliteStatement {
 public:
  SqliteStatement() = default;

  // Arguments are numbers or std::span<const std::byte>, which must live as long as the rows.
  template <typename... Arguments>
  SqliteRows Run(const Arguments&... arguments) {
    int index = 0, result = SQLITE_OK;
    ((result = result == SQLITE_OK ? Bind(++index, arguments) : result), ...);
    return SqliteRows(statement_.get(), result);
  }
  // Where no rows are expected.
  template <typename... Arguments>
  absl::Status Do(const Arguments&... arguments) {
    return Run(arguments...).Next().status();
  }

 private:
  friend class SqliteConnection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  explicit SqliteStatement(sqlite3_stmt* statement) : statement_(statement) {}
  int Bind(int index, int64_t number) { return sqlite3_bind_int64(statement_.get(), index, number); }
  int Bind(int index, std::span<const std::byte> bytes) {
    return sqlite3_bind_blob64(statement_.get(), index, bytes.data(), bytes.size(), SQLITE_STATIC);
  }
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class SqliteConnection {
 public:
  SqliteConnection() = default;
  // Never follows a symbolic link. `flags` are SQLITE_OPEN_READONLY or SQLITE_OPEN_READWRITE.
  static absl::StatusOr<SqliteConnection> Open(const std::string& path, int flags);

  bool open() const { return database_ != nullptr; }
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<SqliteStatement> Prepare(absl::string_view sql);
  // The value of a statement that gives one number.
  absl::StatusOr<int64_t> Number(absl::string_view sql);
  bool InTransaction() const { return sqlite3_get_autocommit(database_.get()) == 0; }
  void SetBusyTimeout(int milliseconds) { sqlite3_busy_timeout(database_.get(), milliseconds); }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  std::unique_ptr<sqlite3, Close> database_;
};

// Rolled back unless it was committed.
class SqliteTransaction {
 public:
  enum class Kind { kRead, kWrite };
  static absl::StatusOr<SqliteTransaction> Begin(SqliteConnection& connection, Kind kind);
  SqliteTransaction(SqliteTransaction&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
  SqliteTransaction& operator=(SqliteTransaction&&) = delete;
  ~SqliteTransaction();

  absl::Status Commit();

 private:
  explicit SqliteTransaction(SqliteConnection* connection) : connection_(connection) {}
  SqliteConnection* connection_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_SQLITE_H_
