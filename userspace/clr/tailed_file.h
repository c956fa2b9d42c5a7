// A file that another program appends to: opened when it appears, followed as it grows, begun anew when it is
// truncated, replaced or rewritten. It knows nothing of what is in the file.
//
// Used by jitdump_tailer and perf_map_tailer. It keeps no bytes: what a parser did not use is read again, so that a
// thousand followed files cost no memory. Main loop only.
#ifndef CLRSAMPLER_CLR_TAILED_FILE_H_
#define CLRSAMPLER_CLR_TAILED_FILE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "os/clock.h"
#include "process/target_files.h"
#include "status/thread_checker.h"

namespace clrsampler {

inline constexpr size_t kLeastScratchBytes = 256 << 10;  // of the buffer that parts of a file are read into

struct TailCounters {
  uint64_t read_bytes = 0;
  uint64_t records = 0;      // whole and understood
  uint64_t bad_records = 0;  // not understood and skipped
  uint64_t glued_lines = 0;  // of a perf map: lines without an end of line of their own, good ones and bad ones
  uint64_t torn_tails = 0;   // polls that ended inside a record
  uint64_t resets = 0;       // the file was truncated, replaced or rewritten

  TailCounters& operator+=(const TailCounters& more);
};

// The state of a followed file, as its tailer sees it.
enum class TailState : uint8_t {
  kMissing,  // never seen
  kReading,
  kTorn,     // ends inside a record, which is normal for a moment
  kDead,     // ends inside a record for good
  kClosed,   // ends behind a record, and the process has closed it (its runtime was told to stop writing)
  kFailed,   // the tailer's status says why; what was read before stays
  kRefused,  // not this process's; the tailer's status says why
};

class TailedFile {
 public:
  using Opener = absl::FunctionRef<absl::StatusOr<OpenedFile>()>;

  enum class Change {
    kNone,  // no new bytes
    kGrown,
    kOpened,  // seen for the first time
    kReset,   // another file, or another content: what was read is void
  };

  // Looks at the size. While that stands still, it looks once a second also whether the path now leads to another file
  // (`may_reopen` false: never, the owner of the path has exited and somebody else may use it). An error is the
  // opener's.
  absl::StatusOr<Change> Poll(Opener open, MonotonicTime now, bool may_reopen);

  // The same for a tailer in `state`, which keeps the opener's error, or is complete with what it has. nullopt: an
  // error.
  std::optional<Change> PollFor(TailState state, Opener open, MonotonicTime now, bool may_reopen, absl::Status& status,
                                MonotonicTime& complete_until);

  // Reads from `offset`, at most to the size that Look saw.
  absl::StatusOr<size_t> Read(uint64_t offset, std::span<std::byte> buffer);
  // Remembers the first bytes of the file, by which a rewritten file is told from a grown one.
  void Remember(std::span<const std::byte> first_bytes);

  bool is_open() const { return file_.fd.valid(); }
  uint64_t size() const { return size_; }
  MonotonicTime last_growth() const { return last_growth_; }
  uint64_t device() const { return file_.status.st_dev; }
  uint64_t inode() const { return file_.status.st_ino; }
  uint64_t modified_ns() const;  // CLOCK_REALTIME, as of Look

 private:
  static constexpr uint64_t kPathCheckNs = 1'000'000'000;
  absl::StatusOr<bool> IsRewritten();
  Change Adopt(OpenedFile file, MonotonicTime now, Change change);

  OpenedFile file_;
  uint64_t size_ = 0;
  MonotonicTime last_growth_;
  MonotonicTime last_path_check_;
  std::array<std::byte, 64> first_bytes_{};
  size_t first_count_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_TAILED_FILE_H_
