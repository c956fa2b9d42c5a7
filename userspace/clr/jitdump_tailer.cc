#include "clr/jitdump_tailer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clr/recorded_name.h"
#include "clr/tailed_file.h"
#include "formats/byte_reader.h"
#include "formats/names/runtime_names.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// A header may be a little older than the start of the process: the start is known in ticks of 10 ms.
constexpr uint64_t kStartSlackNs = 1'000'000'000;

}  // namespace

class JitdumpTailer::Sink : public JitdumpSink {
 public:
  Sink(JitdumpTailer& tailer, const JitdumpExpectation& expectation) : tailer_(tailer), expectation_(expectation) {}

  void OnHeader(const JitdumpHeader& header) override {
    tailer_.clock_offset_ns_ = expectation_.clock_offset_ns;
    refusal_ = tailer_.Judge(header, expectation_);
    tailer_.header_time_ = tailer_.last_record_ = tailer_.OurTime(header.timestamp);
  }

  void OnLoad(const JitdumpLoad& load) override {
    if (!refusal_.ok()) return;
    ++tailer_.counters_.records;
    const MonotonicTime time = tailer_.OurTime(load.timestamp);
    tailer_.last_record_ = std::max(tailer_.last_record_, time);
    tailer_.methods_.Add(load.code_address, load.code_size, {load.name_offset, MethodNameHash(load.name)},
                         IsRuntimeStub(load.name), AddedWindow::Exactly(time));
  }

  void OnMove(const JitdumpMove& move) override {
    if (!refusal_.ok()) return;
    ++tailer_.counters_.records;
    const MonotonicTime time = tailer_.OurTime(move.timestamp);
    tailer_.last_record_ = std::max(tailer_.last_record_, time);
    tailer_.methods_.Move(move.old_code_address, move.new_code_address, time);
  }

  void OnUnwinding(const JitdumpUnwinding&) override { ++tailer_.counters_.records; }
  void OnClose(uint64_t) override { ++tailer_.counters_.records; }
  void OnUnknown(uint32_t, uint32_t) override { ++tailer_.counters_.bad_records; }

  const absl::Status& refusal() const { return refusal_; }

 private:
  JitdumpTailer& tailer_;
  const JitdumpExpectation& expectation_;
  absl::Status refusal_;
};

MonotonicTime JitdumpTailer::OurTime(uint64_t timestamp) const {
  // Unsigned arithmetic wraps as the clock does. A time before the start of our clock can't be sampled and becomes its
  // start.
  const uint64_t shifted = timestamp - static_cast<uint64_t>(clock_offset_ns_);
  const bool below_zero = clock_offset_ns_ > 0 && timestamp < static_cast<uint64_t>(clock_offset_ns_);
  return {below_zero ? 0 : shifted};
}

absl::Status JitdumpTailer::Judge(const JitdumpHeader& header, const JitdumpExpectation& expectation) const {
  if (header.arch_timestamps) {
    return absl::UnimplementedError(
        "its time stamps are processor ticks, which can't be compared with the samples' times");
  }
  if (expectation.namespace_pid != 0 && header.pid != expectation.namespace_pid) {
    return absl::FailedPreconditionError(
        absl::StrCat("it belongs to process ", header.pid, ", not to ", expectation.namespace_pid));
  }
  if (OurTime(header.timestamp).ns + kStartSlackNs < expectation.started.ns) {
    return absl::FailedPreconditionError("it was written by an earlier process of the same pid");
  }
  return absl::OkStatus();
}

void JitdumpTailer::Reset() {
  parser_ = JitdumpParser();
  methods_.Clear();
  status_ = absl::OkStatus();
  header_time_ = last_record_ = whole_at_ = complete_until_ = MonotonicTime::Min();
  missing_writer_ = false;
  next_writer_check_ = MonotonicTime::Min();
}

void JitdumpTailer::Poll(TailedFile::Opener open, absl::FunctionRef<OpenFileState(uint64_t, uint64_t)> is_written,
                         const JitdumpExpectation& expectation, bool process_alive, MonotonicTime now,
                         size_t budget_bytes, std::vector<std::byte>& scratch) {
  main_loop_.Check();
  const std::optional<TailedFile::Change> change =
      file_.PollFor(state_, open, now, process_alive, status_, complete_until_);
  if (!change) return;
  if (*change == TailedFile::Change::kReset || *change == TailedFile::Change::kOpened) {
    if (*change == TailedFile::Change::kReset) ++counters_.resets;
    Reset();
    state_ = State::kReading;
  }
  if (state_ == State::kFailed || state_ == State::kRefused) {
    complete_until_ = now;
    return;
  }
  // The writer was there before, too.
  if (*change == TailedFile::Change::kGrown) whole_at_ = complete_until_;
  if (*change != TailedFile::Change::kNone || behind_) ReadNew(expectation, budget_bytes, scratch);
  if (state_ == State::kFailed || state_ == State::kRefused || behind_) {
    if (!behind_) complete_until_ = now;
    return;
  }
  // A file without a header is not a jitdump yet.
  const bool torn = !parser_.header_seen() || parser_.offset() != file_.size();
  if (!torn) {
    NoteWhole(*change == TailedFile::Change::kGrown, is_written, process_alive, now);
  } else if (state_ != State::kDead) {
    if (state_ != State::kTorn) ++counters_.torn_tails;
    state_ = State::kTorn;
    const uint64_t age_ns = now.ns - file_.last_growth().ns;
    if (process_alive && age_ns < kTornPatienceNs) return;  // nothing more is complete until this is decided
    if (age_ns >= kTornGiveUpNs) complete_until_ = now;
    if (process_alive && now < next_writer_check_) return;
    next_writer_check_ = {now.ns + kTornPatienceNs};
    if (process_alive && is_written(file_.device(), file_.inode()) == OpenFileState::kOpen) return;
    state_ = State::kDead;
  } else if (*change == TailedFile::Change::kGrown) {
    state_ = State::kTorn;  // somebody writes after all
  }
  if (state_ == State::kDead) complete_until_ = now;
  methods_.NoteCompleteUntil(complete_until_);
}

// The file ends behind a record. A runtime that was told to stop (DisablePerfMap) leaves it like that, too. It then
// says nothing of later compilations, and an address in it may be another method's by now.
void JitdumpTailer::NoteWhole(bool grown, absl::FunctionRef<OpenFileState(uint64_t, uint64_t)> is_written,
                              bool process_alive, MonotonicTime now) {
  if (state_ == State::kClosed && !grown) {
    complete_until_ = now;
    return;
  }
  state_ = State::kReading;
  if (grown) {
    missing_writer_ = false;
    next_writer_check_ = {now.ns + kWriterCheckNs};
  } else if (process_alive && now >= next_writer_check_) {
    const OpenFileState writer = is_written(file_.device(), file_.inode());
    if (writer == OpenFileState::kOpen) whole_at_ = now;
    // Once is not enough: a process that exits loses its descriptors a moment before it is known to have exited.
    if (std::exchange(missing_writer_, writer == OpenFileState::kNotOpen) && missing_writer_) state_ = State::kClosed;
    next_writer_check_ = {now.ns + (missing_writer_ ? kTornPatienceNs : kWriterCheckNs)};
  }
  if (process_alive && missing_writer_ && state_ == State::kReading) return;
  complete_until_ = now;
}

void JitdumpTailer::ReadNew(const JitdumpExpectation& expectation, size_t budget_bytes,
                            std::vector<std::byte>& scratch) {
  if (scratch.size() < kLeastScratchBytes) scratch.resize(kLeastScratchBytes);
  Sink sink(*this, expectation);
  size_t read = 0;
  behind_ = true;
  while (read < budget_bytes) {
    const uint64_t offset = parser_.offset();
    const absl::StatusOr<size_t> got = file_.Read(offset, scratch);
    if (!got.ok()) {
      behind_ = false;
      state_ = State::kFailed;
      status_ = got.status();
      return;
    }
    read += *got;
    counters_.read_bytes += *got;
    const std::span<const std::byte> bytes(scratch.data(), *got);
    const absl::StatusOr<FeedResult> fed = parser_.Feed(bytes, sink);
    if (offset == 0 && parser_.header_seen()) file_.Remember(bytes.first(std::min<size_t>(bytes.size(), 40)));
    if (!fed.ok() || !sink.refusal().ok()) {
      behind_ = false;
      state_ = fed.ok() ? State::kRefused : State::kFailed;
      status_ = fed.ok() ? sink.refusal() : fed.status();
      if (!fed.ok()) ++counters_.bad_records;
      if (state_ == State::kRefused) methods_.Clear();
      return;
    }
    // The scratch is larger than any header or name. So no progress means that the rest is not written yet.
    if (parser_.offset() >= file_.size() || (fed->used == 0 && fed->skip == 0)) {
      behind_ = false;
      return;
    }
  }
}

std::optional<std::string> JitdumpTailer::ReadName(MethodNameRef name) {
  main_loop_.Check();
  return ReadRecordedName(file_, name, JitdumpParser::kMaxNameBytes + 1, [](absl::string_view bytes, bool& ended) {
    const size_t end = bytes.find('\0');
    ended = end != absl::string_view::npos;
    return bytes.substr(0, end);
  });
}

size_t JitdumpTailer::ReadCode(MethodNameRef name, size_t name_bytes, std::span<std::byte> code) {
  main_loop_.Check();
  return file_.Read(name.offset + name_bytes + 1, code).value_or(0);
}

}  // namespace clrsampler
