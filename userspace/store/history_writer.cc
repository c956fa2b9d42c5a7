#include "store/history_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "os/clock.h"
#include "status/status.h"
#include "store/history_schema.h"
#include "store/roll_up.h"

namespace clrsampler {
namespace {

// A dictionary in memory; the next segment begins with a new one. The first window of a host with 50,000 methods in
// 500 processes has 25 MiB (serve_bench). A segment of one window writes all names of each anew.
constexpr size_t kMaxSegmentMemoryBytes = size_t{32} << 20;
constexpr uint64_t kMaxSegmentNs = 24 * 3600 * kSecondNs;
// A segment is this part of the limit. Forgetting a segment's last entry frees its dictionary at once, which has to be
// a small part.
constexpr uint64_t kSegmentsInLimit = 16;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kJumpNs = 3600 * kSecondNs;
constexpr uint64_t kBelieveNs = 3600 * kSecondNs;
constexpr int kSealLevel = 7;  // of zstd, once a segment

// Whether the wall clock was set between two entries that follow each other.
bool IsJump(uint64_t end_unix_ns, uint64_t next_begin_unix_ns) {
  return std::max(end_unix_ns, next_begin_unix_ns) - std::min(end_unix_ns, next_begin_unix_ns) > kJumpNs;
}

uint64_t UnitOf(EntryLevel level) { return (level == EntryLevel::kMinute ? 60 : 3600) * kSecondNs; }

absl::Status NoRoomHint(absl::Status status) {
  if (!absl::IsResourceExhausted(status)) return status;
  return WithHint(std::move(status), "make room on the disk of the history, or give it a smaller limit of bytes");
}

}  // namespace

absl::StatusOr<std::unique_ptr<HistoryWriter>> HistoryWriter::Open(const HistoryFile& file,
                                                                   const HistoryLimits& limits) {
  absl::StatusOr<SqliteConnection> connection = file.OpenForWriting();
  if (!connection.ok()) return NoRoomHint(connection.status());
  std::unique_ptr<HistoryWriter> writer(new HistoryWriter(file, limits, *std::move(connection)));
  RETURN_IF_ERROR(NoRoomHint(writer->Prepare()));
  return writer;
}

HistoryWriter::HistoryWriter(const HistoryFile& file, const HistoryLimits& limits, SqliteConnection connection)
    : file_(file), limits_(limits), connection_(std::move(connection)), since_jump_ns_(kBelieveNs) {
  const uint64_t log_bytes = std::clamp(limits.max_bytes / 8, uint64_t{256} << 10, uint64_t{16} << 20);
  budget_ = {limits.max_bytes - std::min(log_bytes, limits.max_bytes), log_bytes};
}

HistoryWriter::~HistoryWriter() { FinishSegment(); }

absl::Status HistoryWriter::Prepare() {
  const uint64_t checkpoint_pages = std::clamp<uint64_t>(budget_.log_bytes / 2 / kPageBytes, 16, 1000);
  RETURN_IF_ERROR(connection_.Execute(absl::StrCat("PRAGMA wal_autocheckpoint = ", checkpoint_pages,
                                                   "; PRAGMA journal_size_limit = ", budget_.log_bytes / 2)));
  const std::pair<SqliteStatement*, absl::string_view> statements[] = {
      {&insert_entry_, "INSERT INTO entry VALUES(?, ?, ?, ?, ?, ?)"},
      {&insert_dictionary_, "INSERT INTO dictionary VALUES(?, ?)"},
      {&insert_part_, "INSERT OR REPLACE INTO part VALUES(?, ?)"},
      {&oldest_entry_, "SELECT id, segment FROM entry ORDER BY id LIMIT 1"},
      {&oldest_by_time_, "SELECT id, segment FROM entry WHERE begin_ns <= ?1 AND end_ns <= ?1 LIMIT 1"},
      {&delete_entry_, "DELETE FROM entry WHERE id = ?"},
      {&delete_parts_, "DELETE FROM part WHERE id >= ? AND id < ?"},
      {&delete_dictionary_, "DELETE FROM dictionary WHERE id >= ? AND id < ?"},
      {&has_segment_, "SELECT EXISTS(SELECT 1 FROM entry WHERE segment = ?)"},
      {&roll_up_next_,
       "SELECT segment, begin_ns / ?2 FROM entry WHERE level = ?1 AND begin_ns < ?3 ORDER BY begin_ns LIMIT 1"},
      {&roll_up_group_,
       "SELECT id, begin_ns, end_ns, checksum FROM entry WHERE level = ?1 AND segment = ?2 AND begin_ns >= ?3 AND "
       "begin_ns < ?4 "
       "ORDER BY id"},
      {&set_entry_, "UPDATE entry SET level = ?2, begin_ns = ?3, end_ns = ?4, checksum = ?5 WHERE id = ?1"},
      {&part_keys_, "SELECT id FROM part WHERE id >= ? AND id < ?"},
      {&read_part_, "SELECT data FROM part WHERE id = ?"},
      {&page_count_, "PRAGMA page_count"},
      {&free_count_, "PRAGMA freelist_count"},
  };
  for (const auto& [statement, sql] : statements) {
    ASSIGN_OR_RETURN(SqliteStatement prepared, connection_.Prepare(sql));
    *statement = std::move(prepared);
  }
  ASSIGN_OR_RETURN(const int64_t last, connection_.Number("SELECT coalesce(max(id), 0) FROM entry"));
  ASSIGN_OR_RETURN(const int64_t segment, connection_.Number(absl::StrCat(
                                              "SELECT max((SELECT coalesce(max(id), 0) >> ", kDictionaryNumberBits,
                                              " FROM dictionary), (SELECT coalesce(max(segment), 0) FROM entry))")));
  if (last < 0 || last >= kMaxEntryId / 2 || segment < 0 || segment >= kMaxSegmentId / 2) {
    return absl::DataLossError("the store numbers its entries wrong");
  }
  next_entry_ = last + 1;
  next_segment_ = segment + 1;
  return ReadClock();
}

// As if NoteClock had seen what is kept: a restart is no reason to believe a clock. Times that are damaged look like a
// jump.
absl::Status HistoryWriter::ReadClock() {
  ASSIGN_OR_RETURN(SqliteStatement newest_first,
                   connection_.Prepare("SELECT begin_ns, end_ns FROM entry ORDER BY id DESC"));
  SqliteRows rows = newest_first.Run();
  uint64_t since_jump_ns = 0, next_begin_ns = 0, next_length_ns = 0;
  while (since_jump_ns < kBelieveNs) {
    ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return absl::OkStatus();  // no jump is known
    const auto begin_ns = static_cast<uint64_t>(rows.Number(0)), end_ns = static_cast<uint64_t>(rows.Number(1));
    if (!newest_end_unix_ns_) {
      newest_end_unix_ns_ = end_ns;
    } else if (IsJump(end_ns, next_begin_ns)) {
      break;
    } else {
      since_jump_ns += std::min(next_length_ns, kBelieveNs);
    }
    next_begin_ns = begin_ns;
    next_length_ns = end_ns - std::min(begin_ns, end_ns);
  }
  since_jump_ns_ = std::min(since_jump_ns, kBelieveNs);
  return absl::OkStatus();
}

absl::Status HistoryWriter::Append(const Window& window) {
  NoteClock(window);
  ASSIGN_OR_RETURN(const WindowEntry entry, TakeWindow(window));
  absl::StatusOr<SqliteTransaction> transaction =
      SqliteTransaction::Begin(connection_, SqliteTransaction::Kind::kWrite);
  if (!transaction.ok()) return NoRoomHint(transaction.status());
  // Additions to the dictionary of a window that failed come with this one: `stored` moves only with a commit.
  const DictionarySizes sizes = segment_->names->sizes();
  uint64_t addition_bytes = 0;
  if (!(sizes == segment_->stored)) {
    ASSIGN_OR_RETURN(const std::string blob, packer_.Pack(AsBytes(segment_->names->AdditionSince(segment_->stored))));
    addition_bytes = blob.size();
    RETURN_IF_ERROR(NoRoomHint(insert_dictionary_.Do(DictionaryKey(segment_->id, segment_->additions), AsBytes(blob))));
  }
  RETURN_IF_ERROR(NoRoomHint(AddEntry(entry)));
  const absl::StatusOr<bool> more = ForgetToBudget(16);
  if (!more.ok()) return NoRoomHint(more.status());
  RETURN_IF_ERROR(NoRoomHint(transaction->Commit()));
  if (addition_bytes > 0) {
    ++segment_->additions;
    segment_->addition_bytes += addition_bytes;
    segment_->stored = sizes;
  }
  ++next_entry_;
  return absl::OkStatus();
}

absl::StatusOr<bool> HistoryWriter::Maintain(uint64_t now_unix_ns) {
  {
    absl::StatusOr<SqliteTransaction> transaction =
        SqliteTransaction::Begin(connection_, SqliteTransaction::Kind::kWrite);
    if (!transaction.ok()) return NoRoomHint(transaction.status());
    absl::StatusOr<bool> done = ForgetToBudget(64);
    if (done.ok() && !*done && ClockIsBelieved()) {
      done = ForgetByAge(now_unix_ns);
      if (done.ok() && !*done) done = RollUp(now_unix_ns, EntryLevel::kWindow);
      if (done.ok() && !*done) done = RollUp(now_unix_ns, EntryLevel::kMinute);
    }
    if (!done.ok()) return NoRoomHint(done.status());
    if (*done) {
      RETURN_IF_ERROR(NoRoomHint(transaction->Commit()));
      return true;
    }
  }
  absl::StatusOr<bool> more = Shrink();
  if (!more.ok()) return NoRoomHint(more.status());
  return more;
}

absl::StatusOr<WindowEntry> HistoryWriter::TakeWindow(const Window& window) {
  const bool full = segment_ == nullptr || segment_->names->memory_bytes() > kMaxSegmentMemoryBytes ||
                    segment_->addition_bytes > limits_.max_bytes / kSegmentsInLimit ||
                    segment_->additions >= (int64_t{1} << kDictionaryNumberBits) - 1 ||
                    window.begin_unix_ns - std::min(window.begin_unix_ns, segment_->begin_unix_ns) > kMaxSegmentNs;
  if (full) BeginSegment(window.begin_unix_ns);
  WindowEntry entry = TakeApart(window, *segment_->names);
  if (!segment_->names->ok()) {
    BeginSegment(window.begin_unix_ns);
    entry = TakeApart(window, *segment_->names);
  }
  if (!segment_->names->ok()) {
    segment_ = nullptr;
    return absl::InvalidArgumentError("a window that has more names than a history can hold");
  }
  return entry;
}

void HistoryWriter::BeginSegment(uint64_t begin_unix_ns) {
  FinishSegment();
  segment_ = std::make_unique<Segment>();
  segment_->id = next_segment_++;
  segment_->begin_unix_ns = begin_unix_ns;
}

// One dictionary instead of hundreds of additions takes a third of the room. If that fails, they stay as they are.
void HistoryWriter::FinishSegment() {
  const std::unique_ptr<Segment> segment = std::move(segment_);
  if (segment == nullptr || segment->additions < 2 || !segment->names->ok()) return;
  const std::string all = segment->names->AdditionSince({});
  segment->names = nullptr;  // before compressing takes memory as well, with tables that are not kept
  const absl::StatusOr<std::string> blob = BlobPacker().Pack(AsBytes(all), kSealLevel);
  if (!blob.ok()) return;
  absl::StatusOr<SqliteTransaction> transaction =
      SqliteTransaction::Begin(connection_, SqliteTransaction::Kind::kWrite);
  if (!transaction.ok()) return;
  const absl::Status done = [&] {
    RETURN_IF_ERROR(delete_dictionary_.Do(DictionaryKey(segment->id), DictionaryKey(segment->id + 1)));
    RETURN_IF_ERROR(insert_dictionary_.Do(DictionaryKey(segment->id), AsBytes(*blob)));
    return transaction->Commit();
  }();
  (void)done;  // rolled back
}

absl::Status HistoryWriter::AddEntry(const WindowEntry& entry) {
  const int64_t begin = ToSigned(entry.begin_unix_ns), end = ToSigned(entry.end_unix_ns);
  RETURN_IF_ERROR(insert_entry_.Do(next_entry_, segment_->id, static_cast<int64_t>(EntryLevel::kWindow), begin, end,
                                   EntryChecksum(next_entry_, segment_->id, EntryLevel::kWindow, begin, end)));
  RETURN_IF_ERROR(AddPart(PartKey(next_entry_, PartKind::kAccount), EncodeAccount(entry.account)));
  RETURN_IF_ERROR(AddPart(PartKey(next_entry_, PartKind::kTallies), EncodeTallies(entry.tallies)));
  RETURN_IF_ERROR(AddPart(PartKey(next_entry_, PartKind::kPauses), EncodePauses(entry.pauses)));
  RETURN_IF_ERROR(AddPart(PartKey(next_entry_, PartKind::kMethods), EncodeMethods(entry.methods)));
  for (size_t i = 0; i < entry.rows.size(); ++i) {
    for (const auto& [process, rows] : entry.rows[i]) {
      if (!rows.empty()) RETURN_IF_ERROR(AddPart(PartKey(next_entry_, kStackParts[i], process), EncodeRows(rows)));
    }
  }
  return absl::OkStatus();
}

// Nothing is kept of an empty part.
absl::Status HistoryWriter::AddPart(int64_t key, const std::string& bytes) {
  if (bytes.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string blob, packer_.Pack(AsBytes(bytes)));
  return insert_part_.Do(key, AsBytes(blob));
}

void HistoryWriter::NoteClock(const Window& window) {
  if (newest_end_unix_ns_) {
    const bool jumped = IsJump(*newest_end_unix_ns_, window.begin_unix_ns);
    const uint64_t length = window.end_unix_ns - std::min(window.begin_unix_ns, window.end_unix_ns);
    since_jump_ns_ = jumped ? 0 : std::min(since_jump_ns_ + std::min(length, kBelieveNs), kBelieveNs);
  }
  newest_end_unix_ns_ = window.end_unix_ns;
}

bool HistoryWriter::ClockIsBelieved() const { return since_jump_ns_ >= kBelieveNs; }

absl::StatusOr<uint64_t> HistoryWriter::LiveBytes() {
  int64_t pages[2] = {0, 0};
  SqliteStatement* statements[2] = {&page_count_, &free_count_};
  for (int i = 0; i < 2; ++i) {
    SqliteRows rows = statements[i]->Run();
    RETURN_IF_ERROR(rows.Next().status());
    pages[i] = rows.Number(0);
  }
  return static_cast<uint64_t>(std::max<int64_t>(0, pages[0] - pages[1])) * kPageBytes;
}

absl::Status HistoryWriter::Forget(int64_t entry, int64_t segment) {
  RETURN_IF_ERROR(delete_parts_.Do(PartKey(entry, PartKind{0}), PartKeyAfter(entry)));
  RETURN_IF_ERROR(delete_entry_.Do(entry));
  bool used = segment_ != nullptr && segment_->id == segment;
  if (!used) {
    SqliteRows rows = has_segment_.Run(segment);
    RETURN_IF_ERROR(rows.Next().status());
    used = rows.Number(0) != 0;
  }
  return used ? absl::OkStatus() : delete_dictionary_.Do(DictionaryKey(segment), DictionaryKey(segment + 1));
}

// The newest entry stays, whatever the limit is.
absl::StatusOr<bool> HistoryWriter::ForgetToBudget(int at_most) {
  for (int forgotten = 0;; ++forgotten) {
    ASSIGN_OR_RETURN(const uint64_t live, LiveBytes());
    if (live <= budget_.file_bytes || forgotten == at_most) return forgotten > 0;
    int64_t entry = 0, segment = 0;
    {
      SqliteRows rows = oldest_entry_.Run();
      ASSIGN_OR_RETURN(const bool row, rows.Next());
      if (!row) return forgotten > 0;
      entry = rows.Number(0);
      segment = rows.Number(1);
    }
    if (entry >= next_entry_ - 1) return forgotten > 0;
    RETURN_IF_ERROR(Forget(entry, segment));
  }
}

absl::StatusOr<bool> HistoryWriter::ForgetByAge(uint64_t now_unix_ns) {
  if (now_unix_ns <= limits_.max_age_ns) return false;
  for (int forgotten = 0; forgotten < 64; ++forgotten) {
    int64_t entry = 0, segment = 0;
    {
      SqliteRows rows = oldest_by_time_.Run(ToSigned(now_unix_ns - limits_.max_age_ns));
      ASSIGN_OR_RETURN(const bool row, rows.Next());
      if (!row) return forgotten > 0;
      entry = rows.Number(0);
      segment = rows.Number(1);
    }
    RETURN_IF_ERROR(Forget(entry, segment));
  }
  return true;
}

// All entries of one minute or hour of one segment; those of a segment that ends within it stay apart.
absl::StatusOr<bool> HistoryWriter::RollUp(uint64_t now_unix_ns, EntryLevel from) {
  const EntryLevel to = from == EntryLevel::kWindow ? EntryLevel::kMinute : EntryLevel::kHour;
  const uint64_t age = from == EntryLevel::kWindow ? limits_.windows_ns : limits_.minutes_ns;
  const uint64_t unit = UnitOf(to);
  if (now_unix_ns <= age) return false;
  // An entry that began before this is in a minute or hour that has been over long enough.
  const uint64_t before = (now_unix_ns - age) / unit * unit;
  int64_t segment = 0, begin = 0;
  {
    SqliteRows rows = roll_up_next_.Run(static_cast<int64_t>(from), ToSigned(unit), ToSigned(before));
    ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return false;
    segment = rows.Number(0);
    begin = rows.Number(1) * ToSigned(unit);
  }
  std::vector<int64_t> entries, damaged;
  int64_t begin_ns = std::numeric_limits<int64_t>::max(), end_ns = 0;
  {
    SqliteRows rows = roll_up_group_.Run(static_cast<int64_t>(from), segment, begin, begin + ToSigned(unit));
    while (true) {
      ASSIGN_OR_RETURN(const bool row, rows.Next());
      if (!row) break;
      const int64_t id = rows.Number(0), entry_begin = rows.Number(1), entry_end = rows.Number(2);
      if (rows.Number(3) != EntryChecksum(id, segment, from, entry_begin, entry_end)) {
        damaged.push_back(id);
        continue;
      }
      entries.push_back(id);
      begin_ns = std::min(begin_ns, entry_begin);
      end_ns = std::max(end_ns, entry_end);
    }
  }
  for (const int64_t entry : damaged) RETURN_IF_ERROR(Forget(entry, segment));
  damaged_parts_ += damaged.size();
  if (!damaged.empty()) return true;
  if (entries.empty()) return absl::DataLossError("the store's index has entries that its table does not have");
  if (entries.size() > 1) {
    const absl::StatusOr<uint64_t> left_out =
        MergeEntries(entries, {part_keys_, read_part_, insert_part_, delete_parts_}, packer_);
    if (!left_out.ok()) return left_out.status();
    damaged_parts_ += *left_out;
  }
  for (size_t i = 1; i < entries.size(); ++i) RETURN_IF_ERROR(delete_entry_.Do(entries[i]));
  RETURN_IF_ERROR(set_entry_.Do(entries[0], static_cast<int64_t>(to), begin_ns, end_ns,
                                EntryChecksum(entries[0], segment, to, begin_ns, end_ns)));
  return true;
}

// Gives room back that is not in use: first the log's, then the file's. Readers that hold a page of the log delay it.
absl::StatusOr<bool> HistoryWriter::Shrink() {
  bool more = false;
  if (file_.file_bytes() > budget_.file_bytes) {
    ASSIGN_OR_RETURN(const int64_t free, connection_.Number("PRAGMA freelist_count"));
    const uint64_t excess = (file_.file_bytes() - budget_.file_bytes + kPageBytes - 1) / kPageBytes;
    const uint64_t pages = std::min({excess, static_cast<uint64_t>(free), uint64_t{512}});
    if (pages > 0) {
      RETURN_IF_ERROR(connection_.Execute(absl::StrCat("PRAGMA incremental_vacuum(", pages, ")")));
      more = true;
    }
  }
  if (more || file_.log_bytes() > budget_.log_bytes) {
    connection_.SetBusyTimeout(0);
    const absl::Status cut = connection_.Execute("PRAGMA wal_checkpoint(TRUNCATE)");
    connection_.SetBusyTimeout(1000);
    if (!cut.ok() && !absl::IsAborted(cut)) return cut;
    // A reader holds the log: nothing more can be done now.
    more = more && file_.log_bytes() == 0;
  }
  return more;
}

}  // namespace clrsampler
