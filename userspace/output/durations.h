// Lengths of time: one in words, many as percentiles.
#ifndef CLRSAMPLER_OUTPUT_DURATIONS_H_
#define CLRSAMPLER_OUTPUT_DURATIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace clrsampler {

// "37 us", "4.2 ms", "1.31 s"
std::string DurationText(uint64_t ns);

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

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_DURATIONS_H_
