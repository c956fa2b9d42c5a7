// The reading side of a store: answers out of what is there at one moment, whatever is written meanwhile. Each on one
// thread, with a connection of its own.
//
// Everything in the file is checked before it is used. A part of an entry that is damaged is left out and counted;
// DATA_LOSS: the file itself is. A question that is too large fails (RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED) before it
// takes the memory or holds the log for long.
#ifndef CLRSAMPLER_STORE_HISTORY_READER_H_
#define CLRSAMPLER_STORE_HISTORY_READER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "formats/profile/profile_model.h"
#include "store/entry.h"
#include "store/history.h"
#include "store/history_file.h"
#include "store/segment_dictionary.h"
#include "store/sqlite.h"

namespace clrsampler {

class HistoryReader {
 public:
  // CANCELLED: `ended` has become true meanwhile, which is looked at before each piece of work.
  static absl::StatusOr<std::unique_ptr<HistoryReader>> Open(const HistoryFile& file, const std::atomic<bool>& ended);

  absl::StatusOr<HistorySpan> Span();
  absl::StatusOr<ProfileModel> Profile(const HistorySelection& selection, ProfileView view);
  absl::StatusOr<clrsampler::Timeline> Timeline(const HistorySelection& selection, TimelineBy by, size_t max_steps,
                                                size_t max_series);
  absl::StatusOr<HistoryLanes> Lanes(const HistorySelection& selection, const LaneQuestion& question);
  absl::StatusOr<HistoryPauses> Pauses(const HistorySelection& selection, size_t limit);
  absl::StatusOr<HistoryMethods> Methods(const HistorySelection& selection, size_t limit);
  absl::StatusOr<HistoryHealth> Health(uint64_t from_unix_ns, uint64_t to_unix_ns);

  uint64_t damaged_parts() const { return damaged_parts_; }  // met by all questions so far

  struct Entry {
    int64_t id = 0;
    int64_t segment = 0;
    EntryLevel level = EntryLevel::kWindow;
    uint64_t begin_unix_ns = 0, end_unix_ns = 0;
  };
  // The dictionary of an entry's segment, and what of it is selected.
  struct SegmentView {
    int64_t id = 0;
    SegmentDictionary names;
    std::vector<bool> processes, threads;
    std::vector<uint32_t> selected;  // the processes' numbers
  };

 private:
  HistoryReader(SqliteConnection connection, const std::atomic<bool>& ended)
      : connection_(std::move(connection)), ended_(ended) {}
  absl::Status Prepare();
  absl::Status MayGoOn() const;

  using OnEntry = absl::FunctionRef<absl::Status(const Entry&, const SegmentView&)>;
  // In the order in which they were written.
  absl::StatusOr<std::vector<Entry>> EntriesOf(const HistorySelection& selection);
  // Equal steps over what is asked for, none shorter than what is kept.
  struct Steps {
    uint64_t begin_unix_ns = 0, step_ns = 0;
    size_t count = 0;
  };
  static Steps StepsOf(const std::vector<Entry>& entries, const HistorySelection& selection, size_t max_steps);
  absl::Status ForEach(const std::vector<Entry>& entries, const HistorySelection& selection, OnEntry on_entry);
  absl::StatusOr<SegmentView> LoadSegment(int64_t segment, const HistorySelection& selection);

  // Adds what a part says; nothing if it is not there, or damaged.
  template <typename T>
  absl::Status ReadPart(int64_t key, const SegmentView& segment,
                        absl::Status (*decode)(std::span<const std::byte>, const DictionarySizes&, std::vector<T>&),
                        std::vector<T>& values);
  absl::StatusOr<EntryAccount> ReadAccount(const Entry& entry, const SegmentView& segment);
  // The rows of the processes and threads that are selected.
  absl::Status ReadStacks(const Entry& entry, const SegmentView& segment, PartKind kind,
                          absl::FunctionRef<absl::Status(uint32_t, std::span<const StackRow>)> on_process);
  // CPU time of the threads that are selected in place of the processes', where a selection names any.
  absl::Status ReadTallies(const Entry& entry, const SegmentView& segment, const HistorySelection& selection,
                           std::vector<ProcessTally>& tallies);

  SqliteConnection connection_;
  const std::atomic<bool>& ended_;
  SqliteStatement entries_, additions_, part_, parts_, levels_, oldest_, newest_;
  absl::Time deadline_ = absl::InfiniteFuture();
  uint64_t damaged_parts_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_HISTORY_READER_H_
