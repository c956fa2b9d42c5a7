// The tables of a store, and the steps that bring one of an older version up to date. A new store takes all of them.
//
//   entry      id, segment, level, begin_ns, end_ns, checksum         a window, minute or hour; ids grow as they came
//   dictionary  id = segment << 24 | number                            additions to a segment's dictionary, in order
//   part        id = entry << 28 | kind << 24 | process               what an entry says; PartKind
//
// `data` are blobs (blob.h). Keys that are one number each keep the parts of an entry side by side, and make those of
// one process a look-up each. A released step is never changed: a change is a further step, and a test opens a store
// of each version before it.
#ifndef CLRSAMPLER_STORE_HISTORY_SCHEMA_H_
#define CLRSAMPLER_STORE_HISTORY_SCHEMA_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "store/entry.h"
#include "store/sqlite.h"

namespace clrsampler {

inline constexpr uint32_t kHistoryApplicationId = 0x434c5253;  // "CLRS", in the header of the file

inline constexpr int kDictionaryNumberBits = 24;
inline constexpr int kPartProcessBits = 24;
inline constexpr int kPartEntryShift = kPartProcessBits + 4;
inline constexpr int64_t kMaxEntryId = (int64_t{1} << (63 - kPartEntryShift)) - 1;
inline constexpr int64_t kMaxSegmentId = (int64_t{1} << (63 - kDictionaryNumberBits)) - 1;

constexpr int64_t PartKey(int64_t entry, PartKind kind, uint32_t process = 0) {
  return entry << kPartEntryShift | static_cast<int64_t>(kind) << kPartProcessBits | process;
}
// The first key of the next kind, and of the next entry.
constexpr int64_t PartKeyAfter(int64_t entry, PartKind kind) {
  return PartKey(entry, kind) + (int64_t{1} << kPartProcessBits);
}
constexpr int64_t PartKeyAfter(int64_t entry) { return (entry + 1) << kPartEntryShift; }
constexpr uint32_t PartProcess(int64_t key) { return static_cast<uint32_t>(key & ((1 << kPartProcessBits) - 1)); }
constexpr int64_t DictionaryKey(int64_t segment, int64_t number = 0) {
  return segment << kDictionaryNumberBits | number;
}

// The checksum of a row of `entry`: SQLite would not notice that a window has another time than it had.
int64_t EntryChecksum(int64_t id, int64_t segment, EntryLevel level, int64_t begin_ns, int64_t end_ns);

// Step i makes version i + 1 of version i; SQL texts.
std::span<const absl::string_view> HistoryMigrations();

// Each step is one transaction: a store is of one version or the next. FAILED_PRECONDITION: it is of a newer version
// than there are steps for.
absl::Status Migrate(SqliteConnection& connection, std::span<const absl::string_view> steps = HistoryMigrations());

// DATA_LOSS: it has other tables than the steps make.
absl::Status CheckSchema(SqliteConnection& connection);

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_HISTORY_SCHEMA_H_
