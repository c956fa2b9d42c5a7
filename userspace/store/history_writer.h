// The writing side of a store: windows in, roll-ups, forgetting. One thread; owns the one connection that writes.
//
// Forgetting by age and rolling up go by the wall clock. When the clock jumps by more than an hour, as machines without
// a battery for theirs do, nothing is done by age until an hour of windows says the same time. Windows of earlier
// writers count. A clock that is wrong for a moment must not cost the history. The limit of bytes holds all the same.
#ifndef CLRSAMPLER_STORE_HISTORY_WRITER_H_
#define CLRSAMPLER_STORE_HISTORY_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "profile/window.h"
#include "store/blob.h"
#include "store/history.h"
#include "store/history_file.h"
#include "store/segment_builder.h"
#include "store/sqlite.h"
#include "store/window_entry.h"

namespace clrsampler {

class HistoryWriter {
 public:
  // `file` outlives it. Errors of HistoryFile::OpenForWriting.
  static absl::StatusOr<std::unique_ptr<HistoryWriter>> Open(const HistoryFile& file, const HistoryLimits& limits);
  ~HistoryWriter();

  absl::Status Append(const Window& window);
  absl::StatusOr<bool> Maintain(uint64_t now_unix_ns);
  uint64_t damaged_parts() const { return damaged_parts_; }  // that roll-ups had to leave out
  uint64_t dictionary_bytes() const { return segment_ == nullptr ? 0 : segment_->names->memory_bytes(); }

 private:
  struct Segment {
    int64_t id = 0;
    uint64_t begin_unix_ns = 0;
    std::unique_ptr<SegmentBuilder> names = std::make_unique<SegmentBuilder>();
    DictionarySizes stored;       // entries that are in the file
    int64_t additions = 0;        // in the file
    uint64_t addition_bytes = 0;  // of these
  };
  struct Budget {
    uint64_t file_bytes;  // of pages in use
    uint64_t log_bytes;   // that the log may have before it is cut
  };

  HistoryWriter(const HistoryFile& file, const HistoryLimits& limits, SqliteConnection connection);
  absl::Status Prepare();
  absl::Status ReadClock();
  absl::StatusOr<WindowEntry> TakeWindow(const Window& window);
  void BeginSegment(uint64_t begin_unix_ns);
  void FinishSegment();
  absl::Status AddEntry(const WindowEntry& entry);
  absl::Status AddPart(int64_t key, const std::string& bytes);
  void NoteClock(const Window& window);
  bool ClockIsBelieved() const;

  absl::StatusOr<uint64_t> LiveBytes();
  absl::Status Forget(int64_t entry, int64_t segment);
  absl::StatusOr<bool> ForgetToBudget(int at_most);
  absl::StatusOr<bool> ForgetByAge(uint64_t now_unix_ns);
  absl::StatusOr<bool> RollUp(uint64_t now_unix_ns, EntryLevel from);
  absl::StatusOr<bool> Shrink();

  const HistoryFile& file_;
  HistoryLimits limits_;
  Budget budget_;
  SqliteConnection connection_;
  SqliteStatement insert_entry_, insert_dictionary_, insert_part_;
  SqliteStatement oldest_entry_, oldest_by_time_, delete_entry_, delete_parts_, delete_dictionary_, has_segment_;
  SqliteStatement roll_up_next_, roll_up_group_, set_entry_, part_keys_, read_part_;
  SqliteStatement page_count_, free_count_;
  BlobPacker packer_;

  std::unique_ptr<Segment> segment_;
  int64_t next_entry_ = 1, next_segment_ = 1;
  std::optional<uint64_t> newest_end_unix_ns_;  // of the window that came last
  uint64_t since_jump_ns_;                      // so much time in windows has come since the clock jumped
  uint64_t damaged_parts_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_HISTORY_WRITER_H_
