// Follows one jitdump file and keeps the map of its methods.
//
// Things that can happen to the file, and what becomes of it:
//   half a record at the end     waits for the rest; what is whole counts
//   truncated, replaced, rewritten   the map is cleared and the file read from its begin
//   not a jitdump, damaged       kFailed with the reason; what was read before the damage stays
//   other process, other clock   kRefused with the reason; nothing of it is used
//   closed at a record's end     kClosed: what was read stays, the file speaks for no later time
//   the writer died              kDead: half a record at the end that does not grow while nobody has the file open any
//   more
// The last one is the rule with .NET 10.0.0 to 10.0.12: the writer fails on the second stub block (EFAULT; fixed by
// dotnet/runtime#122274) and leaves 33,281 bytes, of which one record is whole.
//
// Main loop only. Nothing blocks; a poll reads at most its budget.
#ifndef CLRSAMPLER_CLR_JITDUMP_TAILER_H_
#define CLRSAMPLER_CLR_JITDUMP_TAILER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "clr/jit_files.h"
#include "clr/tailed_file.h"
#include "formats/jit/jitdump_parser.h"
#include "status/thread_checker.h"
#include "symbols/method_map.h"

namespace clrsampler {

// The facts that are known of the process that should have written the file; times in our own CLOCK_MONOTONIC.
struct JitdumpExpectation {
  uint32_t namespace_pid = 0;   // 0: not known, any pid is taken
  MonotonicTime started;        // no earlier than this; Min when not known
  int64_t clock_offset_ns = 0;  // what the process's time namespace adds to CLOCK_MONOTONIC
};

class JitdumpTailer {
 public:
  using State = TailState;

  JitdumpTailer() : methods_({.claims_earlier = false}) {}

  // Reads what is new, at most about `budget_bytes`. `scratch` is room to read into, made 256 KiB at least. `open`
  // opens the path, `is_written` says whether the process still has the file open (asked when a record is torn, and
  // once a second while the file does not grow). `process_alive` false: the path is not opened again, and half a record
  // is the end.
  void Poll(TailedFile::Opener open, absl::FunctionRef<OpenFileState(uint64_t device, uint64_t inode)> is_written,
            const JitdumpExpectation& expectation, bool process_alive, MonotonicTime now, size_t budget_bytes,
            std::vector<std::byte>& scratch);

  State state() const { return state_; }
  bool usable() const { return state_ != State::kMissing && state_ != State::kRefused; }
  const absl::Status& status() const { return status_; }
  const TailCounters& counters() const { return counters_; }
  bool known_defect() const { return state_ == State::kDead && file_.size() == kDefectBytes; }

  MethodMap& methods() { return methods_; }
  const MethodMap& methods() const { return methods_; }
  // The file speaks for times of our clock in [speaks_from, speaks_until]: from its header on, and once it is not
  // written any more, up to what it is known to hold.
  MonotonicTime speaks_from() const { return header_time_; }
  MonotonicTime speaks_until() const {
    return state_ == State::kReading ? MonotonicTime::Max() : std::max(last_record_, whole_at_);
  }
  // Everything up to this time has been read.
  MonotonicTime complete_until() const { return complete_until_; }
  bool behind() const { return behind_; }  // the budget ended before the file did

  // The text of a name in the map; nullopt when the file does not hold it there any more.
  std::optional<std::string> ReadName(MethodNameRef name);

  // The first bytes of the code that is recorded behind a name of `name_bytes` bytes; fewer than asked where it is
  // shorter or the file ends.
  size_t ReadCode(MethodNameRef name, size_t name_bytes, std::span<std::byte> code);

  // Size of the file that the defect of .NET 10.0.0 to 10.0.12 leaves.
  static constexpr uint64_t kDefectBytes = 33'281;
  // How long half a record may stay as it is before we ask whether anybody still writes. A writev of a large method
  // takes well below a millisecond; a stopped process is still found by is_written.
  static constexpr uint64_t kTornPatienceNs = 200'000'000;
  // After this long samples stop waiting for the rest, although somebody still has the file open (a stopped process).
  static constexpr uint64_t kTornGiveUpNs = 1'000'000'000;
  // How often a file that does not grow is asked for its writer.
  static constexpr uint64_t kWriterCheckNs = 1'000'000'000;

 private:
  class Sink;
  void Reset();
  void ReadNew(const JitdumpExpectation& expectation, size_t budget_bytes, std::vector<std::byte>& scratch);
  void NoteWhole(bool grown, absl::FunctionRef<OpenFileState(uint64_t, uint64_t)> is_written, bool process_alive,
                 MonotonicTime now);
  absl::Status Judge(const JitdumpHeader& header, const JitdumpExpectation& expectation) const;
  MonotonicTime OurTime(uint64_t timestamp) const;

  TailedFile file_;
  JitdumpParser parser_;
  MethodMap methods_;
  State state_ = State::kMissing;
  absl::Status status_;
  TailCounters counters_;
  int64_t clock_offset_ns_ = 0;
  MonotonicTime header_time_;
  MonotonicTime last_record_;
  MonotonicTime whole_at_;  // when the file was last complete for sure: its writer was there then, or wrote after it
  MonotonicTime complete_until_;
  bool missing_writer_ = false;  // at the last look
  MonotonicTime next_writer_check_;
  bool behind_ = false;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_JITDUMP_TAILER_H_
