// Follows one perf map and keeps the map of its methods.
//
// A perf map has no times and no owner inside; what is known is when a line was found and when it was not there yet.
// That window is what MethodMap gets. A runtime that writes its lines in blocks has had a line for as long as the block
// took to fill: nothing is known of what came after the last block, until the next one. A last line that is not ASCII
// may have lost its end of line (perf_map_parser.h); it is taken without one when the file stands still, since it may
// be the program's hottest method. Bad lines are counted and passed over; only a file that is no perf map at all (16
// MiB without an end of line, nothing but bad lines, 1 TiB) ends in kFailed.
//
// Main loop only. Nothing blocks; a poll reads at most its budget.
#ifndef CLRSAMPLER_CLR_PERF_MAP_TAILER_H_
#define CLRSAMPLER_CLR_PERF_MAP_TAILER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "clr/tailed_file.h"
#include "formats/jit/perf_map_parser.h"
#include "os/clock.h"
#include "status/thread_checker.h"
#include "symbols/method_map.h"

namespace clrsampler {

class PerfMapTailer {
 public:
  using State = TailState;  // of which it is never kTorn, kDead or kClosed

  // `in_blocks`: WritesPerfMapInBlocks (runtime_facts.h).
  explicit PerfMapTailer(bool in_blocks = false) : in_blocks_(in_blocks), methods_({.claims_earlier = true}) {}

  // Reads what is new, at most about `budget_bytes`. `scratch` is room to read into, made larger for long lines up to 2
  // MiB. `is_ours` judges a file that was opened (its time of modification, CLOCK_REALTIME, and who has it open); it is
  // asked again after each growth until it says yes. `process_alive` false: the path is not opened again. `now`: not
  // later than the call; `clock` tells how much later a line was found, in which time another method may have run.
  void Poll(TailedFile::Opener open, absl::FunctionRef<bool(const TailedFile&)> is_ours, bool process_alive,
            MonotonicTime now, const Clock& clock, size_t budget_bytes, std::vector<std::byte>& scratch);

  State state() const { return state_; }
  bool usable() const { return state_ == State::kReading || state_ == State::kFailed; }
  const absl::Status& status() const { return status_; }
  const TailCounters& counters() const { return counters_; }

  MethodMap& methods() { return methods_; }
  const MethodMap& methods() const { return methods_; }
  MonotonicTime complete_until() const { return complete_until_; }
  bool in_blocks() const { return in_blocks_; }
  // Everything that was compiled before this time is in the map. Max: all of it. With blocks it may never reach the
  // time of a sample, so that nobody should wait for it.
  MonotonicTime speaks_until() const { return in_blocks_ ? blocks_until_ : MonotonicTime::Max(); }
  bool behind() const { return behind_; }  // the budget ended before the file did

  // The text of a name in the map; nullopt when the file does not hold it there any more.
  std::optional<std::string> ReadName(MethodNameRef name);

 private:
  // How long the last line may stand without its end before it is taken as it is. The runtime writes a line in one
  // write(2), of which a reader may see the first part for a moment.
  static constexpr uint64_t kTailPatienceNs = 200'000'000;
  static constexpr uint64_t kNoTail = ~uint64_t{0};
  // A file with this many bad lines and more bad than good ones is something else.
  static constexpr uint64_t kMaxBadLines = 100'000;

  class Sink;
  void Reset();
  void ReadNew(MonotonicTime now, const Clock& clock, size_t budget_bytes, std::vector<std::byte>& scratch);
  bool TailIsOpen(bool process_alive, MonotonicTime now, const Clock& clock, std::vector<std::byte>& scratch);
  MonotonicTime LineNotThereAt() const;
  bool ContinuesAtLineStart();
  void CountLines();
  void Fail(absl::Status status);

  bool in_blocks_;
  TailedFile file_;
  PerfMapParser parser_;
  MethodMap methods_;
  State state_ = State::kMissing;
  absl::Status status_;
  TailCounters counters_;
  uint64_t counted_good_ = 0;  // of parser_'s counters, what is in counters_ already
  uint64_t counted_bad_ = 0;
  uint64_t counted_glued_ = 0;
  MonotonicTime read_to_end_;       // when the file was last read to its end
  uint64_t tail_offset_ = kNoTail;  // of the line that the file ended in then
  uint64_t tail_size_ = 0;          // of the file when that line was last looked at
  MonotonicTime tail_not_there_;    // when the file was last read to its end without it
  MonotonicTime tail_last_changed_;
  MonotonicTime complete_until_;
  MonotonicTime blocks_until_ = MonotonicTime::Min();  // when the file was last read to its end without its last block
  bool behind_ = false;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_PERF_MAP_TAILER_H_
