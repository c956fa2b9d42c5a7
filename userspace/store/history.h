// The history of a host: windows in, questions about any stretch of time out.
//
// One SQLite file in WAL mode. Windows are kept as they come for a while, then as minutes, then as hours
// (HistoryLimits); names and stacks are interned. A window is one transaction: it is there as a whole or not at all,
// whatever kills the process.
//
// Threads: Append and Maintain from one thread; questions from any, at the same time, each on a connection of its own.
// No question keeps a window from being written.
//
// One question is answered at a time, others wait; one that would take too much memory or time fails
// (RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED) and says how to ask for less.
//
// Clocks: a window is where its own times are. After the clock was set back, windows overlap older ones: both are kept,
// and where they meet sums are those of both, shares of time their mean. After it jumped by more than an hour nothing
// is rolled up or forgotten by age until an hour of windows has come. So a clock that is wrong for a moment does not
// cost the history.
//
// Errors: a full disk or a damaged file never ends the service, nor keeps it from starting: Append says why a window
// was not kept (RESOURCE_EXHAUSTED), later ones are kept again once there is room, and what is older stays. Until the
// file could be opened for the first time, questions fail. A damaged file is set
// aside, also while it is in use, and a new one begun; of a file that is whole, parts that are damaged are left out of
// answers and counted. Everything that the file says is checked before it is used: it may be anybody's.
#ifndef CLRSAMPLER_STORE_HISTORY_H_
#define CLRSAMPLER_STORE_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"
#include "profile/window.h"
#include "store/history_types.h"

namespace clrsampler {

struct HistoryLimits {
  uint64_t max_bytes = uint64_t{2} << 30;  // of the file and its log, at least 1 MiB; the oldest goes first
  uint64_t max_age_ns = uint64_t{30} * 24 * 3600 * 1'000'000'000;
  uint64_t windows_ns = uint64_t{24} * 3600 * 1'000'000'000;      // that old, windows become minutes
  uint64_t minutes_ns = uint64_t{7} * 24 * 3600 * 1'000'000'000;  // and these hours
};

class History {
 public:
  // Opens or makes the file (mode 0600) in a folder that is there. One of an older schema is brought up to date. One
  // that is damaged, now or later, is set aside as PATH.damaged-TIME, where it replaces the one before, and a new one
  // begun; `said` is told so, by Open, Append or Maintain. ABORTED: another process writes
  // it, perhaps one that ends. FAILED_PRECONDITION: it is of a newer schema, another user's, a link, or no history.
  // RESOURCE_EXHAUSTED: the disk is so full that the file's lock can't be made. Where only the file can't be opened,
  // `said` is told, and Append tries again.
  static absl::StatusOr<std::unique_ptr<History>> Open(const std::string& path, const HistoryLimits& limits,
                                                       const std::function<void(const std::string&)>& said);
  virtual ~History() = default;

  virtual absl::Status Append(const Window& window) = 0;
  // Rolls up and forgets what is old or too much, a piece at a time: one minute, one hour, or some entries. True: there
  // is more to do. Append keeps the limit of bytes by itself; only this makes the file shorter.
  virtual absl::StatusOr<bool> Maintain(uint64_t now_unix_ns) = 0;

  virtual absl::StatusOr<HistorySpan> Span() = 0;
  // In WindowUnitOf the view, without times of samples; by thread but where there were too many rows (tid 0 then: all
  // of a process). The host, the creator and the like in `meta` are the caller's to fill in.
  virtual absl::StatusOr<ProfileModel> Profile(const HistorySelection& selection, ProfileView view) = 0;
  virtual absl::StatusOr<clrsampler::Timeline> Timeline(const HistorySelection& selection, TimelineBy by,
                                                        size_t max_steps, size_t max_series) = 0;
  virtual absl::StatusOr<HistoryLanes> Lanes(const HistorySelection& selection, const LaneQuestion& question) = 0;
  virtual absl::StatusOr<HistoryPauses> Pauses(const HistorySelection& selection, size_t limit) = 0;
  virtual absl::StatusOr<HistoryMethods> Methods(const HistorySelection& selection, size_t limit) = 0;
  virtual absl::StatusOr<HistoryHealth> Health(uint64_t from_unix_ns, uint64_t to_unix_ns) = 0;

  // Questions that run or wait end soon (CANCELLED), later ones at once: a caller that ends need not wait for their
  // answers.
  virtual void EndQuestions() = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_HISTORY_H_
