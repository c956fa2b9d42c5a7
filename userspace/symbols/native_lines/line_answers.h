// Lines of addresses in files: what is known, what is being asked, and what is to be asked next.
#ifndef CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_ANSWERS_H_
#define CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_ANSWERS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "os/clock.h"
#include "os/unique_fd.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbols/native_lines/line_process.h"
#include "symbols/native_lines/line_wire.h"
#include "symbols/source_place.h"

namespace clrsampler {

struct NativeLineCounters {
  uint64_t files = 0;         // with debug information
  uint64_t files_failed = 0;  // of these: could not be read, or not to the end
  uint64_t addresses = 0;     // that were asked for
  uint64_t found = 0;         // of these: have a line
  uint64_t late = 0;          // frames that were written without a line because the answer had not come
  uint64_t readers_lost = 0;

  std::map<std::string, uint64_t> ByName() const;  // as --stats writes them
};

// Main loop only. Borrows `notices`.
class LineAnswers {
 public:
  static constexpr size_t kMaxFiles = 128;                   // open at a time
  static constexpr size_t kMaxKnown = 128 * 1024;            // addresses; all are forgotten beyond
  static constexpr size_t kMaxTextBytes = 8 << 20;           // of paths; likewise
  static constexpr size_t kMaxQueued = 16 * 1024;            // addresses; more are not asked for now
  static constexpr size_t kMaxOutstanding = 16;              // questions that the helper has
  static constexpr uint64_t kMaxHoldNs = 1'000'000'000;      // samples wait no longer for an answer
  static constexpr uint64_t kMaxSilenceNs = 15'000'000'000;  // the helper is ended after it

  LineAnswers(std::shared_ptr<LineHelper> helper, Notices& notices) : helper_(std::move(helper)), notices_(notices) {}

  // nullopt: too many are open. `path`: for people.
  std::optional<uint64_t> AddFile(UniqueFd file, std::string path);
  // Nobody asks for it any more.
  void DropFile(uint64_t file) { files_.erase(file); }

  // Asks for the line of the code at `address`, as linked, unless it is known or asked for. `time`: of the sample.
  void Ask(uint64_t file, uint64_t address, MonotonicTime time);
  // The line if it is known. nullopt: there is none, or it has not come. A line that is not known yet is asked for now,
  // and no sample waits for it.
  std::optional<SourcePlace> Get(uint64_t file, uint64_t address);

  // Takes answers and hands out questions.
  void Poll(MonotonicTime now);
  // Until all has been answered, for so long at most.
  void Await(uint64_t limit_ns, const Clock& clock);

  // Everything before that time has been answered, or is not waited for any more.
  MonotonicTime AnsweredUntil() const;
  // Grows when an answer has come too late for some frame.
  uint64_t generation() const { return generation_; }
  const NativeLineCounters& counters() const { return counters_; }

 private:
  struct File {
    UniqueFd fd;
    std::string path;
  };
  struct Known {
    uint32_t text = 0;  // in texts_
    uint32_t line = 0;  // 0: none
    LineKind kind = LineKind::kNone;
    bool answered = false;
    bool missed = false;  // a frame went without it
  };
  struct Batch {
    LineQuestion question;
    MonotonicTime oldest;  // sample that waits for it
  };

  Known* Find(uint64_t file, uint64_t address, MonotonicTime time);
  void Take(absl::string_view datagram);
  void TakeAnswer(const LineAnswer& answer, const Batch& batch);
  void Learn(uint64_t file, uint64_t address, const NativeLine& line);
  std::optional<Batch> TakeOutstanding(uint64_t number);
  void FailFile(uint64_t file, absl::string_view why);
  void SendQuestions();
  void CheckHelper();
  void GiveUp(absl::string_view why, absl::string_view hint);
  uint32_t TextNumber(const std::string& text);
  void ForgetAll();

  const std::shared_ptr<LineHelper> helper_;
  Notices& notices_;
  absl::flat_hash_map<uint64_t, File> files_;
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, Known> known_;  // by file and address
  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, uint32_t> text_numbers_;
  size_t text_bytes_ = 0;
  std::deque<Batch> queue_;
  size_t queued_ = 0;        // addresses
  bool overflowed_ = false;  // some were not taken
  std::deque<Batch> outstanding_;
  MonotonicTime now_, progress_;
  NativeLineCounters counters_;
  uint64_t generation_ = 0;
  bool off_ = false;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_ANSWERS_H_
