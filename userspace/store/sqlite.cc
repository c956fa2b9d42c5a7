#include "store/sqlite.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The errors where a file grows and there is no room. EFBIG is RLIMIT_FSIZE.
bool IsNoRoom(int error_number) { return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG; }

absl::Status SqliteError(sqlite3* database, int result) {
  const int last_error_number = errno;
  const int extended = database == nullptr ? result : sqlite3_extended_errcode(database);
  const char* path = database == nullptr ? nullptr : sqlite3_db_filename(database, "main");
  std::string message = absl::StrCat(path == nullptr || *path == '\0' ? "the store" : path, ": ",
                                     database == nullptr ? sqlite3_errstr(result) : sqlite3_errmsg(database));
  switch (result & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(message);
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(message);
    case SQLITE_NOMEM:
      return absl::ResourceExhaustedError(message);
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
      return absl::FailedPreconditionError(message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::AbortedError(message);
    case SQLITE_IOERR: {
      int error_number = database == nullptr ? 0 : sqlite3_system_errno(database);
      // SQLite 3.40 does not tell it of a commit. No call that has succeeded since has changed it.
      if (error_number == 0 && extended == SQLITE_IOERR_WRITE) error_number = last_error_number;
      if (error_number != 0) absl::StrAppend(&message, ", ", ErrnoError(error_number, "system").message());
      if (IsNoRoom(error_number) || extended == SQLITE_IOERR_SHMSIZE) return absl::ResourceExhaustedError(message);
      // A page that lies behind the end of the file, or that the disk can't give.
      if (extended == SQLITE_IOERR_SHORT_READ || extended == SQLITE_IOERR_CORRUPTFS ||
          (extended == SQLITE_IOERR_READ && error_number == EIO)) {
        return absl::DataLossError(message);
      }
      return absl::UnknownError(message);
    }
    default:
      return absl::UnknownError(message);
  }
}

}  // namespace

SqliteRows::~SqliteRows() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

absl::StatusOr<bool> SqliteRows::Next() {
  const int result = bound_ == SQLITE_OK ? sqlite3_step(statement_) : bound_;
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return SqliteError(sqlite3_db_handle(statement_), result);
}

std::span<const std::byte> SqliteRows::Blob(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  return {static_cast<const std::byte*>(data),
          data == nullptr ? 0 : static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

absl::string_view SqliteRows::Text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_, column);
  return {reinterpret_cast<const char*>(text),
          text == nullptr ? 0 : static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

absl::StatusOr<SqliteConnection> SqliteConnection::Open(const std::string& path, int flags) {
  SqliteConnection connection;
  sqlite3* database = nullptr;
  const int result = sqlite3_open_v2(
      path.c_str(), &database, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE, nullptr);
  connection.database_.reset(database);
  if (result != SQLITE_OK) return Annotate(SqliteError(database, result), path);
  // A file that others may have written: nothing in it is run, and its structure is looked at before it is trusted.
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  RETURN_IF_ERROR(connection.Execute("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY"));
  return connection;
}

absl::Status SqliteConnection::Execute(const std::string& sql) {
  const int result = sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  return result == SQLITE_OK ? absl::OkStatus() : SqliteError(database_.get(), result);
}

absl::StatusOr<SqliteStatement> SqliteConnection::Prepare(absl::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (result != SQLITE_OK) return SqliteError(database_.get(), result);
  return SqliteStatement(statement);
}

absl::StatusOr<int64_t> SqliteConnection::Number(absl::string_view sql) {
  ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
  SqliteRows rows = statement.Run();
  ASSIGN_OR_RETURN(const bool row, rows.Next());
  if (!row) return absl::NotFoundError(absl::StrCat("no row: ", sql));
  return rows.Number(0);
}

absl::StatusOr<SqliteTransaction> SqliteTransaction::Begin(SqliteConnection& connection, Kind kind) {
  RETURN_IF_ERROR(connection.Execute(kind == Kind::kRead ? "BEGIN" : "BEGIN IMMEDIATE"));
  return SqliteTransaction(&connection);
}

// An error may have rolled it back already.
SqliteTransaction::~SqliteTransaction() {
  if (connection_ != nullptr && connection_->InTransaction()) (void)connection_->Execute("ROLLBACK");
}

absl::Status SqliteTransaction::Commit() { return connection_->Execute("COMMIT"); }

}  // namespace clrsampler
