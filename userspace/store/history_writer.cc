#include "store/history_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "status/status.h"
#include "store/history_schema.h"
#include "store/roll_up.h"

namespace clrsampler {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
// A dictionary in memory; the next chapter begins with a new one.
constexpr size_t kMaxChapterMemoryBytes = size_t{24} << 20;
constexpr uint64_t kMaxChapterNs = 24 * 3600 * kSecond;
// Of the limit: forgetting a chapter's last record frees its dictionary at once, which has to be a small part.
constexpr uint64_t kChaptersInLimit = 16;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kJumpNs = 3600 * kSecond;
constexpr uint64_t kBelieveNs = 3600 * kSecond;
constexpr int kSealLevel = 7;  // of zstd, once a chapter

uint64_t UnitOf(RecordLevel level) { return (level == RecordLevel::kMinute ? 60 : 3600) * kSecond; }

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

HistoryWriter::~HistoryWriter() { FinishChapter(); }

absl::Status HistoryWriter::Prepare() {
  const uint64_t checkpoint_pages = std::clamp<uint64_t>(budget_.log_bytes / 2 / kPageBytes, 16, 1000);
  RETURN_IF_ERROR(connection_.Execute(absl::StrCat("PRAGMA wal_autocheckpoint = ", checkpoint_pages,
                                                   "; PRAGMA journal_size_limit = ", budget_.log_bytes / 2)));
  const std::pair<SqliteStatement*, absl::string_view> statements[] = {
      {&insert_record_, "INSERT INTO record VALUES(?, ?, ?, ?, ?, ?)"},
      {&insert_dictionary_, "INSERT INTO dictionary VALUES(?, ?)"},
      {&insert_part_, "INSERT OR REPLACE INTO part VALUES(?, ?)"},
      {&oldest_record_, "SELECT id, chapter FROM record ORDER BY id LIMIT 1"},
      {&oldest_by_time_, "SELECT id, chapter FROM record WHERE begin_ns <= ?1 AND end_ns <= ?1 LIMIT 1"},
      {&delete_record_, "DELETE FROM record WHERE id = ?"},
      {&delete_parts_, "DELETE FROM part WHERE id >= ? AND id < ?"},
      {&delete_dictionary_, "DELETE FROM dictionary WHERE id >= ? AND id < ?"},
      {&has_chapter_, "SELECT EXISTS(SELECT 1 FROM record WHERE chapter = ?)"},
      {&roll_up_next_,
       "SELECT chapter, begin_ns / ?2 FROM record WHERE level = ?1 AND begin_ns < ?3 ORDER BY begin_ns LIMIT 1"},
      {&roll_up_group_,
       "SELECT id, begin_ns, end_ns, checksum FROM record WHERE level = ?1 AND chapter = ?2 AND begin_ns >= ?3 AND "
       "begin_ns < ?4 "
       "ORDER BY id"},
      {&set_record_, "UPDATE record SET level = ?2, begin_ns = ?3, end_ns = ?4, checksum = ?5 WHERE id = ?1"},
      {&part_keys_, "SELECT id FROM part WHERE id >= ? AND id < ?"},
      {&read_part_, "SELECT data FROM part WHERE id = ?"},
      {&page_count_, "PRAGMA page_count"},
      {&free_count_, "PRAGMA freelist_count"},
  };
  for (const auto& [statement, sql] : statements) {
    absl::StatusOr<SqliteStatement> prepared = connection_.Prepare(sql);
    if (!prepared.ok()) return prepared.status();
    *statement = *std::move(prepared);
  }
  const absl::StatusOr<int64_t> last = connection_.Number("SELECT coalesce(max(id), 0) FROM record");
  if (!last.ok()) return last.status();
  const absl::StatusOr<int64_t> chapter =
      connection_.Number(absl::StrCat("SELECT max((SELECT coalesce(max(id), 0) >> ", kDictionaryNumberBits,
                                      " FROM dictionary), (SELECT coalesce(max(chapter), 0) FROM record))"));
  if (!chapter.ok()) return chapter.status();
  const absl::StatusOr<int64_t> newest =
      connection_.Number("SELECT coalesce((SELECT end_ns FROM record ORDER BY id DESC LIMIT 1), 0)");
  if (!newest.ok()) return newest.status();
  if (*last < 0 || *last >= kMaxRecordId / 2 || *chapter < 0 || *chapter >= kMaxChapterId / 2) {
    return absl::DataLossError("the store numbers its records wrong");
  }
  next_record_ = *last + 1;
  next_chapter_ = *chapter + 1;
  if (*newest > 0) newest_end_unix_ns_ = static_cast<uint64_t>(*newest);
  return absl::OkStatus();
}

absl::Status HistoryWriter::Append(const Window& window) {
  NoteClock(window);
  const absl::StatusOr<WindowRecord> record = TakeWindow(window);
  if (!record.ok()) return record.status();
  absl::StatusOr<SqliteTransaction> transaction =
      SqliteTransaction::Begin(connection_, SqliteTransaction::Kind::kWrite);
  if (!transaction.ok()) return NoRoomHint(transaction.status());
  // What a window that failed has added to the dictionary comes with this one: `stored` moves only with a commit.
  const DictionarySizes sizes = chapter_->names->sizes();
  uint64_t addition_bytes = 0;
  if (!(sizes == chapter_->stored)) {
    const absl::StatusOr<std::string> blob = packer_.Pack(AsBytes(chapter_->names->AdditionSince(chapter_->stored)));
    if (!blob.ok()) return blob.status();
    addition_bytes = blob->size();
    RETURN_IF_ERROR(
        NoRoomHint(insert_dictionary_.Do(DictionaryKey(chapter_->id, chapter_->additions), AsBytes(*blob))));
  }
  RETURN_IF_ERROR(NoRoomHint(AddRecord(*record)));
  const absl::StatusOr<bool> more = ForgetToBudget(16);
  if (!more.ok()) return NoRoomHint(more.status());
  RETURN_IF_ERROR(NoRoomHint(transaction->Commit()));
  if (addition_bytes > 0) {
    ++chapter_->additions;
    chapter_->addition_bytes += addition_bytes;
    chapter_->stored = sizes;
  }
  ++next_record_;
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
      if (done.ok() && !*done) done = RollUp(now_unix_ns, RecordLevel::kWindow);
      if (done.ok() && !*done) done = RollUp(now_unix_ns, RecordLevel::kMinute);
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

absl::StatusOr<WindowRecord> HistoryWriter::TakeWindow(const Window& window) {
  const bool full = chapter_ == nullptr || chapter_->names->memory_bytes() > kMaxChapterMemoryBytes ||
                    chapter_->addition_bytes > limits_.max_bytes / kChaptersInLimit ||
                    chapter_->additions >= (int64_t{1} << kDictionaryNumberBits) - 1 ||
                    window.begin_unix_ns - std::min(window.begin_unix_ns, chapter_->begin_unix_ns) > kMaxChapterNs;
  if (full) BeginChapter(window.begin_unix_ns);
  WindowRecord record = TakeApart(window, *chapter_->names);
  if (!chapter_->names->ok()) {
    BeginChapter(window.begin_unix_ns);
    record = TakeApart(window, *chapter_->names);
  }
  if (!chapter_->names->ok()) {
    chapter_ = nullptr;
    return absl::InvalidArgumentError("a window that has more names than a history can hold");
  }
  return record;
}

void HistoryWriter::BeginChapter(uint64_t begin_unix_ns) {
  FinishChapter();
  chapter_ = std::make_unique<Chapter>();
  chapter_->id = next_chapter_++;
  chapter_->begin_unix_ns = begin_unix_ns;
}

// One dictionary instead of hundreds of additions takes a third of the room. Not being able to leaves them as they are.
void HistoryWriter::FinishChapter() {
  const std::unique_ptr<Chapter> chapter = std::move(chapter_);
  if (chapter == nullptr || chapter->additions < 2 || !chapter->names->ok()) return;
  const std::string all = chapter->names->AdditionSince({});
  chapter->names = nullptr;  // before compressing takes memory as well, with tables that are not kept
  const absl::StatusOr<std::string> blob = BlobPacker().Pack(AsBytes(all), kSealLevel);
  if (!blob.ok()) return;
  absl::StatusOr<SqliteTransaction> transaction =
      SqliteTransaction::Begin(connection_, SqliteTransaction::Kind::kWrite);
  if (!transaction.ok()) return;
  const absl::Status done = [&] {
    RETURN_IF_ERROR(delete_dictionary_.Do(DictionaryKey(chapter->id), DictionaryKey(chapter->id + 1)));
    RETURN_IF_ERROR(insert_dictionary_.Do(DictionaryKey(chapter->id), AsBytes(*blob)));
    return transaction->Commit();
  }();
  (void)done;  // rolled back
}

absl::Status HistoryWriter::AddRecord(const WindowRecord& record) {
  const int64_t begin = ToSigned(record.begin_unix_ns), end = ToSigned(record.end_unix_ns);
  RETURN_IF_ERROR(insert_record_.Do(next_record_, chapter_->id, static_cast<int64_t>(RecordLevel::kWindow), begin, end,
                                    RecordChecksum(next_record_, chapter_->id, RecordLevel::kWindow, begin, end)));
  RETURN_IF_ERROR(AddPart(PartKey(next_record_, PartKind::kAccount), EncodeAccount(record.account)));
  RETURN_IF_ERROR(AddPart(PartKey(next_record_, PartKind::kTallies), EncodeTallies(record.tallies)));
  RETURN_IF_ERROR(AddPart(PartKey(next_record_, PartKind::kPauses), EncodePauses(record.pauses)));
  RETURN_IF_ERROR(AddPart(PartKey(next_record_, PartKind::kMethods), EncodeMethods(record.methods)));
  for (size_t i = 0; i < record.rows.size(); ++i) {
    for (const auto& [process, rows] : record.rows[i]) {
      if (!rows.empty()) RETURN_IF_ERROR(AddPart(PartKey(next_record_, kStackParts[i], process), EncodeRows(rows)));
    }
  }
  return absl::OkStatus();
}

// Nothing is kept of a part that has nothing in it.
absl::Status HistoryWriter::AddPart(int64_t key, const std::string& bytes) {
  if (bytes.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> blob = packer_.Pack(AsBytes(bytes));
  if (!blob.ok()) return blob.status();
  return insert_part_.Do(key, AsBytes(*blob));
}

void HistoryWriter::NoteClock(const Window& window) {
  if (newest_end_unix_ns_) {
    const uint64_t last = *newest_end_unix_ns_, begin = window.begin_unix_ns;
    const bool jumped = (begin > last ? begin - last : last - begin) > kJumpNs;
    const uint64_t length = window.end_unix_ns - std::min(begin, window.end_unix_ns);
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
    const absl::StatusOr<bool> row = rows.Next();
    if (!row.ok()) return row.status();
    pages[i] = rows.Number(0);
  }
  return static_cast<uint64_t>(std::max<int64_t>(0, pages[0] - pages[1])) * kPageBytes;
}

absl::Status HistoryWriter::Forget(int64_t record, int64_t chapter) {
  RETURN_IF_ERROR(delete_parts_.Do(PartKey(record, PartKind{0}), PartKeyAfter(record)));
  RETURN_IF_ERROR(delete_record_.Do(record));
  bool used = chapter_ != nullptr && chapter_->id == chapter;
  if (!used) {
    SqliteRows rows = has_chapter_.Run(chapter);
    const absl::StatusOr<bool> row = rows.Next();
    if (!row.ok()) return row.status();
    used = rows.Number(0) != 0;
  }
  return used ? absl::OkStatus() : delete_dictionary_.Do(DictionaryKey(chapter), DictionaryKey(chapter + 1));
}

// The newest record stays, whatever the limit is.
absl::StatusOr<bool> HistoryWriter::ForgetToBudget(int at_most) {
  for (int forgotten = 0;; ++forgotten) {
    const absl::StatusOr<uint64_t> live = LiveBytes();
    if (!live.ok()) return live.status();
    if (*live <= budget_.file_bytes || forgotten == at_most) return forgotten > 0;
    int64_t record = 0, chapter = 0;
    {
      SqliteRows rows = oldest_record_.Run();
      const absl::StatusOr<bool> row = rows.Next();
      if (!row.ok()) return row.status();
      if (!*row) return forgotten > 0;
      record = rows.Number(0);
      chapter = rows.Number(1);
    }
    if (record >= next_record_ - 1) return forgotten > 0;
    RETURN_IF_ERROR(Forget(record, chapter));
  }
}

absl::StatusOr<bool> HistoryWriter::ForgetByAge(uint64_t now_unix_ns) {
  if (now_unix_ns <= limits_.max_age_ns) return false;
  for (int forgotten = 0; forgotten < 64; ++forgotten) {
    int64_t record = 0, chapter = 0;
    {
      SqliteRows rows = oldest_by_time_.Run(ToSigned(now_unix_ns - limits_.max_age_ns));
      const absl::StatusOr<bool> row = rows.Next();
      if (!row.ok()) return row.status();
      if (!*row) return forgotten > 0;
      record = rows.Number(0);
      chapter = rows.Number(1);
    }
    RETURN_IF_ERROR(Forget(record, chapter));
  }
  return true;
}

// All records of one minute or hour of one chapter; those of a chapter that ends within it stay apart.
absl::StatusOr<bool> HistoryWriter::RollUp(uint64_t now_unix_ns, RecordLevel from) {
  const RecordLevel to = from == RecordLevel::kWindow ? RecordLevel::kMinute : RecordLevel::kHour;
  const uint64_t age = from == RecordLevel::kWindow ? limits_.windows_ns : limits_.minutes_ns;
  const uint64_t unit = UnitOf(to);
  if (now_unix_ns <= age) return false;
  // Begun before this, a record is in a minute or hour that is over long enough.
  const uint64_t before = (now_unix_ns - age) / unit * unit;
  int64_t chapter = 0, begin = 0;
  {
    SqliteRows rows = roll_up_next_.Run(static_cast<int64_t>(from), ToSigned(unit), ToSigned(before));
    const absl::StatusOr<bool> row = rows.Next();
    if (!row.ok()) return row.status();
    if (!*row) return false;
    chapter = rows.Number(0);
    begin = rows.Number(1) * ToSigned(unit);
  }
  std::vector<int64_t> records, damaged;
  int64_t begin_ns = std::numeric_limits<int64_t>::max(), end_ns = 0;
  {
    SqliteRows rows = roll_up_group_.Run(static_cast<int64_t>(from), chapter, begin, begin + ToSigned(unit));
    while (true) {
      const absl::StatusOr<bool> row = rows.Next();
      if (!row.ok()) return row.status();
      if (!*row) break;
      const int64_t id = rows.Number(0), record_begin = rows.Number(1), record_end = rows.Number(2);
      if (rows.Number(3) != RecordChecksum(id, chapter, from, record_begin, record_end)) {
        damaged.push_back(id);
        continue;
      }
      records.push_back(id);
      begin_ns = std::min(begin_ns, record_begin);
      end_ns = std::max(end_ns, record_end);
    }
  }
  for (const int64_t record : damaged) RETURN_IF_ERROR(Forget(record, chapter));
  damaged_parts_ += damaged.size();
  if (!damaged.empty()) return true;
  if (records.empty()) return absl::DataLossError("the store's index has records that its table does not have");
  if (records.size() > 1) {
    const absl::StatusOr<uint64_t> left_out =
        MergeRecords(records, {part_keys_, read_part_, insert_part_, delete_parts_}, packer_);
    if (!left_out.ok()) return left_out.status();
    damaged_parts_ += *left_out;
  }
  for (size_t i = 1; i < records.size(); ++i) RETURN_IF_ERROR(delete_record_.Do(records[i]));
  RETURN_IF_ERROR(set_record_.Do(records[0], static_cast<int64_t>(to), begin_ns, end_ns,
                                 RecordChecksum(records[0], chapter, to, begin_ns, end_ns)));
  return true;
}

// Gives room back that is not in use: first the log's, then the file's. Readers that hold a page of the log delay it.
absl::StatusOr<bool> HistoryWriter::Shrink() {
  bool more = false;
  if (file_.file_bytes() > budget_.file_bytes) {
    const absl::StatusOr<int64_t> free = connection_.Number("PRAGMA freelist_count");
    if (!free.ok()) return free.status();
    const uint64_t excess = (file_.file_bytes() - budget_.file_bytes + kPageBytes - 1) / kPageBytes;
    const uint64_t pages = std::min({excess, static_cast<uint64_t>(*free), uint64_t{512}});
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
