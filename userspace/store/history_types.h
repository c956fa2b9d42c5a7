// The questions to the history, and its answers. Times are of the wall clock, in nanoseconds since 1970. Plain values.
#ifndef CLRSAMPLER_STORE_HISTORY_TYPES_H_
#define CLRSAMPLER_STORE_HISTORY_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profile/account.h"
#include "profile/lane_category.h"
#include "profile/window.h"

namespace clrsampler {

// Selects whose time is meant; all that is given must fit. With a thread, CPU time and profiles are that thread's,
// pauses are those that it asked for (as far as they are listed; in a timeline those of its process), and Methods
// fails.
struct HistorySelection {
  uint64_t from_unix_ns = 0;  // windows, minutes and hours that begin in [from, to)
  uint64_t to_unix_ns = 0;
  std::optional<uint32_t> pid;
  std::optional<std::string> comm;  // of the process
  std::optional<std::string>
      container;  // its label (WindowProcess::container), id, or the first 12 or more letters of that
  std::optional<std::string> thread;  // a thread id or a thread's name
};

struct HistorySpan {
  uint64_t oldest_unix_ns = 0;  // begin of the oldest; 0: there is nothing
  uint64_t newest_unix_ns = 0;  // end of the newest
  uint64_t bytes = 0;           // of the file and its log
  // In memory: the names and stacks of the segment that is being written, 24 MB at most, then the next one begins.
  uint64_t dictionary_bytes = 0;
  uint64_t windows = 0, minutes = 0, hours = 0;
  uint64_t damaged_parts = 0;  // of windows, minutes and hours, that had to be left out of answers since Open
};

enum class TimelineBy : uint8_t { kProcess, kContainer };

struct TimelineSeries {
  std::string label;      // comm, or container; "" for processes in no container; "[others]" where there are too many
  std::string container;  // of a process; may be empty
  uint32_t pid = 0;       // 0: of a container, or others
  bool dotnet = false;
  std::vector<double> cores;         // CPU time per time, for each step
  std::vector<uint64_t> pause_ns;    // of .NET processes, for each step
  std::vector<uint64_t> suspend_ns;  // likewise
  std::vector<uint64_t> compile_ns;
  std::vector<uint64_t> allocated_bytes;
  std::vector<uint64_t> wait_ns;  // of all threads, whatever they waited for
};

struct Timeline {
  uint64_t begin_unix_ns = 0;
  uint64_t step_ns = 0;  // at least that of what is kept: 10 s, a minute, an hour
  size_t steps = 0;
  std::vector<uint64_t> covered_ns;    // for each step: how much of it is known, 0: nothing
  std::vector<TimelineSeries> series;  // most CPU time first
  // The times that the threads of all that are meant ran and waited, for each step; empty where no waits are known.
  std::vector<WaitTimes> states;
};

struct LaneQuestion {
  std::string method;  // only of stacks with a frame that has this in its name, whatever the case; "": of all
  size_t max_steps = 0;
  size_t max_threads = 0;
};

// The work of threads over time: CPU time by what ran, and time of waiting where it is recorded.
struct HistoryLanes {
  uint64_t begin_unix_ns = 0;
  uint64_t step_ns = 0;  // as in Timeline
  size_t steps = 0;
  std::vector<bool> covered;  // for each step: whether anything is known
  struct Thread {
    uint32_t pid = 0;  // 0: of all others together
    uint32_t tid = 0;  // 0: all threads of the process, where there were too many
    std::string comm;
    std::string container;
    std::string name;
    uint64_t total_ns = 0;
  };
  std::vector<Thread> threads;  // most time first, at most max_threads; behind them the others
  size_t others = 0;            // how many threads the last one stands for; 0: it is one like the rest
  struct Lane {
    uint32_t thread = 0;  // index of threads
    LaneCategory state = LaneCategory::kOther;
    std::vector<std::pair<uint32_t, uint64_t>> values;  // step and nanoseconds, in order, none of 0
  };
  std::vector<Lane> lanes;  // by thread, then state
};

struct HistoryPause {
  WindowPause pause;  // `process` has no meaning
  uint32_t pid = 0;
  std::string comm;
  std::string container;
};

struct HistoryPauses {
  uint64_t count = 0, pause_ns = 0, suspend_ns = 0;  // of all, also those that are not listed or no longer kept
  std::map<std::string, uint64_t> count_by_kind;
  std::vector<HistoryPause> longest;  // longest first
};

struct HistoryMethod {
  WindowMethod method;  // `process` has no meaning
  uint32_t pid = 0;
  std::string comm;
  std::string container;
};

struct HistoryMethods {
  uint64_t count = 0, total_ns = 0;    // of all
  std::vector<HistoryMethod> methods;  // most time first
};

// The account of a stretch of time.
struct HistoryHealth {
  uint64_t covered_ns = 0;  // time that windows are kept of
  uint64_t samples_expected = 0, samples_taken = 0, samples_written = 0;
  std::map<std::string, uint64_t> lost;  // by reason
  FrameCounts managed, native, kernel;
  uint64_t stacks_complete = 0, stacks_truncated = 0, stacks_broken = 0;
  double self_cpu_seconds = 0;
  uint64_t peak_rss_bytes = 0;
  uint64_t bpf_map_bytes = 0;  // the newest
  std::map<std::string, uint64_t> notice_counts;
  std::vector<std::string> notices;  // sentences, newest first, at most 50
  struct Rate {
    uint64_t time_unix_ns = 0;
    uint32_t hz = 0;
  };
  std::vector<Rate> rates;  // where it changed, in order
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_HISTORY_TYPES_H_
