#include "store/history_schema.h"

#include <zlib.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr std::array<absl::string_view, 3> kMigrations = {
    R"(CREATE TABLE record(id INTEGER PRIMARY KEY, chapter INTEGER NOT NULL, level INTEGER NOT NULL,
                           begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, checksum INTEGER NOT NULL);
       CREATE INDEX record_begin ON record(begin_ns);
       CREATE TABLE dictionary(id INTEGER PRIMARY KEY, data BLOB NOT NULL);
       CREATE TABLE part(id INTEGER PRIMARY KEY, data BLOB NOT NULL);)",
    R"(ALTER TABLE record RENAME TO entry;
       ALTER TABLE entry RENAME COLUMN chapter TO segment;
       DROP INDEX record_begin;
       CREATE INDEX entry_begin ON entry(begin_ns);)",
    "",  // frames may have the hash of their file
};

absl::StatusOr<std::string> SchemaText(SqliteConnection& connection) {
  ASSIGN_OR_RETURN(SqliteStatement statement,
                   connection.Prepare("SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name"));
  std::string text;
  SqliteRows rows = statement.Run();
  while (true) {
    ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return text;
    absl::StrAppend(&text, rows.Text(0), " ", rows.Text(1), " ", rows.Text(2), "\n");
  }
}

}  // namespace

std::span<const absl::string_view> HistoryMigrations() { return kMigrations; }

int64_t EntryChecksum(int64_t id, int64_t segment, EntryLevel level, int64_t begin_ns, int64_t end_ns) {
  const int64_t values[] = {id, segment, static_cast<int64_t>(level), begin_ns, end_ns};
  return static_cast<int64_t>(crc32_z(0, reinterpret_cast<const Bytef*>(values), sizeof values));
}

absl::Status Migrate(SqliteConnection& connection, std::span<const absl::string_view> steps) {
  ASSIGN_OR_RETURN(const int64_t version, connection.Number("PRAGMA user_version"));
  if (version < 0) return absl::DataLossError("the store has a version below 0");
  if (version > static_cast<int64_t>(steps.size())) {
    return WithHint(absl::FailedPreconditionError(absl::StrCat("the store has version ", version,
                                                               ", this program knows versions up to ", steps.size())),
                    "use the newer program, or another file");
  }
  for (size_t i = static_cast<size_t>(version); i < steps.size(); ++i) {
    ASSIGN_OR_RETURN(SqliteTransaction transaction,
                     SqliteTransaction::Begin(connection, SqliteTransaction::Kind::kWrite));
    RETURN_IF_ERROR(connection.Execute(std::string(steps[i])));
    RETURN_IF_ERROR(connection.Execute(absl::StrCat("PRAGMA user_version = ", i + 1)));
    RETURN_IF_ERROR(transaction.Commit());
  }
  return absl::OkStatus();
}

absl::Status CheckSchema(SqliteConnection& connection) {
  ASSIGN_OR_RETURN(SqliteConnection model,
                   SqliteConnection::Open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY));
  RETURN_IF_ERROR(Migrate(model));
  ASSIGN_OR_RETURN(const std::string expected, SchemaText(model));
  ASSIGN_OR_RETURN(const std::string found, SchemaText(connection));
  if (found != expected) return absl::DataLossError("the store has other tables than a history has");
  return absl::OkStatus();
}

}  // namespace clrsampler
