#include "clr/perf_map_tailer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "clr/recorded_name.h"
#include "clr/tailed_file.h"
#include "formats/byte_reader.h"
#include "formats/names/runtime_names.h"

namespace clrsampler {
namespace {

constexpr size_t kMostScratchBytes = 2 << 20;
static_assert(kMostScratchBytes > PerfMapParser::kMaxLineBytes);

}  // namespace

class PerfMapTailer::Sink : public PerfMapSink {
 public:
  // The first line may be older than the others: the file may have ended inside it before.
  Sink(MethodMap& methods, MonotonicTime first_after, MonotonicTime after)
      : methods_(methods), window_{first_after, first_after}, after_(after) {}
  // The lines that follow were in the file by then.
  void FoundBy(MonotonicTime time) { window_.by = time; }
  void OnLine(const PerfMapLine& line) override {
    methods_.Add(line.start, line.size, {line.name_offset, MethodNameHash(line.name)}, IsRuntimeStub(line.name),
                 window_);
    window_.after = after_;
  }

 private:
  MethodMap& methods_;
  AddedWindow window_;
  const MonotonicTime after_;
};

void PerfMapTailer::Reset() {
  parser_ = PerfMapParser();
  methods_.Clear();
  status_ = absl::OkStatus();
  counted_good_ = counted_bad_ = counted_glued_ = 0;
  read_to_end_ = complete_until_ = blocks_until_ = MonotonicTime::Min();
  tail_offset_ = kNoTail;
}

void PerfMapTailer::Fail(absl::Status status) {
  behind_ = false;
  state_ = State::kFailed;
  status_ = std::move(status);
}

void PerfMapTailer::Poll(TailedFile::Opener open, absl::FunctionRef<bool(const TailedFile&)> is_ours,
                         bool process_alive, MonotonicTime now, const Clock& clock, size_t budget_bytes,
                         std::vector<std::byte>& scratch) {
  main_loop_.Check();
  const std::optional<TailedFile::Change> change =
      file_.PollFor(state_, open, now, process_alive, status_, complete_until_);
  if (!change) return;
  const bool fresh = *change == TailedFile::Change::kReset || *change == TailedFile::Change::kOpened;
  bool grown = *change != TailedFile::Change::kNone || behind_;
  if (*change == TailedFile::Change::kGrown && state_ == State::kReading && !ContinuesAtLineStart()) {
    // The file was truncated and written beyond our offset between two looks, with the same first bytes.
    ++counters_.resets;
    Reset();
  } else if (fresh) {
    if (*change == TailedFile::Change::kReset) ++counters_.resets;
    Reset();
  }
  if ((fresh || state_ == State::kRefused) && grown) {
    state_ = is_ours(file_) ? State::kReading : State::kRefused;
    if (state_ == State::kRefused)
      status_ = absl::FailedPreconditionError("it was left by an earlier process of the same pid");
    grown = true;
  }
  if (state_ == State::kReading && grown) ReadNew(now, clock, budget_bytes, scratch);
  if (behind_) return;
  if (grown) blocks_until_ = read_to_end_;
  const bool tail_is_open = state_ == State::kReading && TailIsOpen(process_alive, now, clock, scratch);
  complete_until_ = tail_is_open ? std::max(complete_until_, tail_not_there_) : now;
  if (state_ == State::kReading) read_to_end_ = now;
}

// Whether the file ends in a line of which more may come soon. Takes a line that has lost its end.
bool PerfMapTailer::TailIsOpen(bool process_alive, MonotonicTime now, const Clock& clock,
                               std::vector<std::byte>& scratch) {
  const uint64_t offset = parser_.offset();
  if (offset >= file_.size() || parser_.inside_long_line()) {
    tail_offset_ = kNoTail;
    return false;
  }
  if (tail_offset_ != offset) {
    tail_not_there_ = read_to_end_;
    tail_offset_ = offset;
    tail_size_ = 0;
  }
  if (tail_size_ != file_.size()) {
    tail_size_ = file_.size();
    tail_last_changed_ = now;
  } else if (tail_last_changed_ == MonotonicTime::Min()) {
    return false;  // looked at before, and not taken
  }
  if (process_alive && now.ns - tail_last_changed_.ns < kTailPatienceNs) return true;
  tail_last_changed_ = MonotonicTime::Min();
  const uint64_t bytes = file_.size() - offset;
  if (bytes > PerfMapParser::kMaxLineBytes) return false;
  if (scratch.size() < bytes) scratch.resize(bytes);
  const absl::StatusOr<size_t> got = file_.Read(offset, std::span(scratch).first(bytes));
  if (!got.ok() || *got != bytes) return false;
  const MonotonicTime after = in_blocks_ ? blocks_until_ : tail_not_there_;
  Sink sink(methods_, after, after);
  sink.FoundBy(std::max(now, clock.Now()));
  if (parser_.TakeUnended(std::span(scratch).first(bytes), sink)) tail_offset_ = kNoTail;
  CountLines();
  return false;
}

MonotonicTime PerfMapTailer::LineNotThereAt() const {
  return tail_offset_ == parser_.offset() ? tail_not_there_ : read_to_end_;
}

// Our offset is mostly behind an end of line. When the file does not have one there, it is another file by now.
bool PerfMapTailer::ContinuesAtLineStart() {
  if (parser_.offset() == 0 || !parser_.at_line_start()) return true;
  std::byte before{};
  const absl::StatusOr<size_t> got = file_.Read(parser_.offset() - 1, std::span(&before, 1));
  return got.ok() && *got == 1 && before == std::byte{'\n'};
}

void PerfMapTailer::ReadNew(MonotonicTime now, const Clock& clock, size_t budget_bytes,
                            std::vector<std::byte>& scratch) {
  if (scratch.size() < kLeastScratchBytes) scratch.resize(kLeastScratchBytes);
  const MonotonicTime after = in_blocks_ ? blocks_until_ : read_to_end_;
  Sink sink(methods_, in_blocks_ ? after : LineNotThereAt(), after);
  size_t read = 0;
  behind_ = true;
  while (read < budget_bytes) {
    const uint64_t offset = parser_.offset();
    const absl::StatusOr<size_t> got = file_.Read(offset, scratch);
    if (!got.ok()) return Fail(got.status());
    read += *got;
    counters_.read_bytes += *got;
    sink.FoundBy(std::max(now, clock.Now()));
    const std::span<const std::byte> bytes(scratch.data(), *got);
    const absl::StatusOr<size_t> used = parser_.Feed(bytes, sink);
    CountLines();
    if (!used.ok()) return Fail(used.status());
    if (offset == 0) file_.Remember(bytes.first(*used));
    const PerfMapCounters& lines = parser_.counters();
    const uint64_t bad = lines.bad_lines + lines.long_lines;
    if (bad > kMaxBadLines && bad > lines.lines) {
      return Fail(absl::DataLossError("not a perf map: most lines are not \"START SIZE NAME\""));
    }
    if (parser_.offset() > MethodNameRef::kMaxOffset) return Fail(absl::ResourceExhaustedError("longer than 1 TiB"));
    if (*got == 0 || offset + *got >= file_.size()) {
      if (parser_.offset() < file_.size()) ++counters_.torn_tails;
      behind_ = false;
      return;
    }
    // A line longer than the room: at its largest, the parser always gets on.
    if (*used == 0 && scratch.size() < kMostScratchBytes) scratch.resize(scratch.size() * 2);
  }
}

void PerfMapTailer::CountLines() {
  const PerfMapCounters& lines = parser_.counters();
  const uint64_t bad = lines.bad_lines + lines.long_lines;
  counters_.records += lines.lines - std::exchange(counted_good_, lines.lines);
  counters_.bad_records += bad - std::exchange(counted_bad_, bad);
  counters_.glued_lines += lines.glued_lines - std::exchange(counted_glued_, lines.glued_lines);
}

std::optional<std::string> PerfMapTailer::ReadName(MethodNameRef name) {
  main_loop_.Check();
  return ReadRecordedName(file_, name, kMostScratchBytes, PerfMapParser::NameAt);
}

}  // namespace clrsampler
