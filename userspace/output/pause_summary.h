// Pauses in words: a line each, and at the end how long they were.
#ifndef CLRSAMPLER_OUTPUT_PAUSE_SUMMARY_H_
#define CLRSAMPLER_OUTPUT_PAUSE_SUMMARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "os/clock.h"
#include "profile/suspension_tracker.h"

namespace clrsampler {

// "37 us", "4.2 ms", "1.31 s"
std::string DurationText(uint64_t ns);

// "     0.000  gc gen1 blocking, alloc-soh       pause 1.2 ms  stopped after 31 us  by 4711 .NET TP Worker"; the time
// is in seconds since `begin`.
std::string PauseLine(const Pause& pause, MonotonicTime begin);

// Times in steps of a sixteenth of a power of two, so that memory does not grow with their number: 976 counters.
class DurationHistogram {
 public:
  void Add(uint64_t ns);
  uint64_t count() const { return count_; }
  uint64_t sum_ns() const { return sum_ns_; }
  uint64_t max_ns() const { return max_ns_; }
  // The upper bound of the step in which the given share of all lies: at most a sixteenth too much. 0 without any.
  uint64_t Percentile(double percent) const;

 private:
  static constexpr int kSteps = 16;
  static size_t StepOf(uint64_t ns);
  static uint64_t EndOf(size_t step);

  std::array<uint64_t, 61 * kSteps> counts_{};
  uint64_t count_ = 0, sum_ns_ = 0, max_ns_ = 0;
};

class PauseSummary {
 public:
  void Add(const Pause& pause);
  MonotonicTime first_request() const { return first_; }
  // Several lines: by kind and generation how many and how long, then a histogram of all.
  std::string Text(double seconds) const;

 private:
  struct Row {
    DurationHistogram pause, suspend;
  };
  MonotonicTime first_ = MonotonicTime::Max();
  std::map<std::string, Row> rows_;
  Row all_;
  std::array<uint64_t, 65> bars_{};  // pauses by the bits of their microseconds
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_PAUSE_SUMMARY_H_
