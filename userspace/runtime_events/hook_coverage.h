// For which part of a process its probes were there, so that what they have counted can be told for the whole. Pure.
//
// Some work is counted by the program's threads themselves, as allocated bytes are. The growth of their counts while
// the probes were gone is the work that the probes did not see.
//
// Elsewhere the measure is CPU time: a program that idles does nothing that a probe could count, and probes are
// detached while it is busy. By time on the clock, what it idles would seem to be what it does.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_HOOK_COVERAGE_H_
#define CLRSAMPLER_RUNTIME_EVENTS_HOOK_COVERAGE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "os/clock.h"

namespace clrsampler {

// Each thread's own count of its work so far, by the kernel's id of the thread.
using ThreadCounts = absl::flat_hash_map<uint64_t, uint64_t>;

class HookCoverage {
 public:
  // From now on: whether the probes are there. `cpu_ns`: what the process has used so far; nullopt: it has ended.
  void Note(bool complete, MonotonicTime now, std::optional<uint64_t> cpu_ns) {
    if (begun_ && now >= last_) {
      const uint64_t passed = now.ns - last_.ns;
      const uint64_t used = cpu_ns && *cpu_ns > last_cpu_ns_ ? *cpu_ns - last_cpu_ns_ : 0;
      wall_ns_ += passed;
      cpu_ns_ += used;
      if (complete_) {
        complete_wall_ns_ += passed;
        complete_cpu_ns_ += used;
      } else {
        open_cpu_ns_ += used;
        open_wall_ns_ += passed;
      }
    }
    begun_ = true;
    complete_ = complete;
    last_ = std::max(last_, now);
    if (cpu_ns) last_cpu_ns_ = *cpu_ns;
  }
  void Note(MonotonicTime now, std::optional<uint64_t> cpu_ns) { Note(complete_, now, cpu_ns); }

  // Counts of threads are for the time without probes. Each call is about the moment of the last Note. There is one
  // whenever the probes have gone or are back, and before Take while they are gone. Where there never is one, CPU time
  // is the measure.
  //
  // nullopt: they can't be read. CPU time is the measure of the time since the last counts.
  void NoteCounts(std::optional<ThreadCounts> counts) {
    failed_in_a_row_ = counts ? 0 : failed_in_a_row_ + 1;
    const std::optional<uint64_t> grown =
        counts_ && counts && !thread_came_and_went_ ? Growth(*counts_, *counts) : std::nullopt;
    CountOpenTime(grown && *grown / kMostEachNs <= open_wall_ns_ ? grown : std::nullopt);
    counts_ = complete_ ? std::nullopt : std::move(counts);
    counts_due_.ns = last_.ns + (failed_in_a_row_ == 0 ? kCountsNs : kAgainNs << std::min(failed_in_a_row_ - 1, 6));
  }
  // They were not read now, as that costs too much.
  void SkipCounts() {
    CountOpenTime(std::nullopt);
    counts_.reset();
  }
  // Whether they must be what they were, since no thread has run.
  bool CountsAreUnchanged() const { return counts_ && open_cpu_ns_ == 0; }
  void NoteUnchangedCounts() {
    CountOpenTime(0);
    if (complete_) counts_.reset();
    counts_due_.ns = last_.ns + kCountsNs;
  }
  // When they are to be read again. A thread that ends takes its count with it, so this is often.
  std::optional<MonotonicTime> counts_due() const {
    return begun_ && !complete_ ? std::optional(counts_due_) : std::nullopt;
  }
  // Whether they could not be read a short time ago.
  bool CountsFailed() const { return failed_in_a_row_ > 0 && last_ < counts_due_; }

  // A thread that begins and ends between two counts is in neither of them. Both are told a moment late: that may
  // spoil the counts of the next time instead.
  void NoteThreadBegan(uint32_t tid) {
    if (!counts_) return;
    if (fresh_threads_.size() == kMostFreshThreads) {
      thread_came_and_went_ = true;
    } else {
      fresh_threads_.insert(tid);
    }
  }
  void NoteThreadEnded(uint32_t tid) { thread_came_and_went_ |= fresh_threads_.contains(tid); }

  bool begun() const { return begun_; }
  bool complete() const { return complete_; }
  // The share of all that was watched.
  double share() const {
    return cpu_ns_ > 0 && complete_cpu_ns_ > 0 ? Ratio(complete_cpu_ns_, cpu_ns_) : Ratio(complete_wall_ns_, wall_ns_);
  }

  struct Whole {
    double factor = 1;           // what was seen is to be multiplied with this
    uint64_t counted = 0;        // the part of the whole that threads have counted
    uint64_t without_stack = 0;  // the same where nothing was seen, so that no stack can stand for it
  };
  // The probes have seen `seen` of the work since the last call. They have used `probes_ns` of the CPU time, which the
  // program would not have had without them: of an exception that takes 1.3 us they are four fifths. Where they were
  // never there, or too little was done to be seen, it is part of the next call; unless the process `ends`.
  Whole Take(uint64_t seen, uint64_t probes_ns, bool ends = false) {
    const bool nothing_to_see = seen == 0 && counted_ > 0 && counted_ < kLeastSeen;
    if (!ends && (complete_wall_ns_ == 0 || nothing_to_see)) return {};
    const Whole whole{Factor(seen, probes_ns), counted_, seen == 0 ? counted_ : 0};
    // The factor has estimated the time since then.
    if (open_cpu_ns_ > 0) counts_.reset();
    wall_ns_ = complete_wall_ns_ = open_wall_ns_ = 0;
    cpu_ns_ = complete_cpu_ns_ = open_cpu_ns_ = uncounted_cpu_ns_ = counted_ = 0;
    return whole;
  }

 private:
  static constexpr uint64_t kLeastSeen = 100'000;  // the collector reports as many bytes at a time

  double Factor(uint64_t seen, uint64_t probes_ns) const {
    const double counted = seen == 0 ? 0 : static_cast<double>(counted_) / static_cast<double>(seen);
    if (complete_cpu_ns_ == 0 && counted_ == 0) return 1 / share();
    const uint64_t rest_cpu_ns = uncounted_cpu_ns_ + open_cpu_ns_;
    if (complete_cpu_ns_ == 0 || rest_cpu_ns == 0) return 1 + counted;
    const uint64_t own_cpu_ns = complete_cpu_ns_ - std::min(probes_ns, complete_cpu_ns_ / 8 * 7);
    return 1 + counted + static_cast<double>(rest_cpu_ns) / static_cast<double>(own_cpu_ns);
  }

  static double Ratio(uint64_t part, uint64_t whole) {
    return whole == 0 || part == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
  }

  // The time without probes since the last counts is over. nullopt: nobody knows how much the counts grew in it.
  void CountOpenTime(std::optional<uint64_t> grown) {
    if (grown) {
      counted_ += *grown;
    } else {
      uncounted_cpu_ns_ += open_cpu_ns_;
    }
    open_cpu_ns_ = open_wall_ns_ = 0;
    thread_came_and_went_ = false;
    fresh_threads_.clear();
  }

  static constexpr uint64_t kCountsNs = 20'000'000;
  static constexpr uint64_t kAgainNs = 1'000'000'000;  // after they could not be read; it doubles up to a minute
  static constexpr size_t kMostFreshThreads = 1024;

  // A collection takes back what a thread was given and has not used: some KB up to 256 KB.
  static constexpr uint64_t kTakenBack = 1 << 20;

  // The counts are the program's own word. More than 1 TB a second is not believed.
  static constexpr uint64_t kMostEachNs = 1000;

  // nullopt: a thread has ended meanwhile, and nobody knows what it counted before.
  static std::optional<uint64_t> Growth(const ThreadCounts& before, const ThreadCounts& now) {
    uint64_t were = 0, are = 0;
    for (const auto& [thread, count] : before) {
      const auto found = now.find(thread);
      if (found == now.end() || (found->second < count && count - found->second > kTakenBack)) return std::nullopt;
      were += count;
    }
    for (const auto& [thread, count] : now) are += count;
    return are - std::min(are, were);
  }

  bool begun_ = false, complete_ = false;
  MonotonicTime last_ = MonotonicTime::Min();
  uint64_t last_cpu_ns_ = 0;
  uint64_t wall_ns_ = 0, complete_wall_ns_ = 0;
  uint64_t cpu_ns_ = 0, complete_cpu_ns_ = 0;
  // Without probes: since the last counts, and before them where nobody counted.
  uint64_t open_cpu_ns_ = 0, open_wall_ns_ = 0, uncounted_cpu_ns_ = 0;
  std::optional<ThreadCounts> counts_;  // where the probes went, or later
  uint64_t counted_ = 0;                // by threads, without probes
  MonotonicTime counts_due_ = MonotonicTime::Min();
  int failed_in_a_row_ = 0;
  absl::flat_hash_set<uint32_t> fresh_threads_;  // since the last counts
  bool thread_came_and_went_ = false;            // since then
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_HOOK_COVERAGE_H_
