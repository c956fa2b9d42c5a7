// Pauses in words: a line each, and at the end how long they were.
#ifndef CLRSAMPLER_OUTPUT_PAUSE_SUMMARY_H_
#define CLRSAMPLER_OUTPUT_PAUSE_SUMMARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "os/clock.h"
#include "output/durations.h"
#include "profile/suspension_tracker.h"

namespace clrsampler {

// "     0.000  gc gen1 blocking, alloc-soh       pause 1.2 ms  stopped after 31 us  by 4711 .NET TP Worker"; the time
// is in seconds since `begin`.
std::string PauseLine(const Pause& pause, MonotonicTime begin);

// "gc gen1 blocking", "gc-preparation heap-count-change", "rejit"
std::string PausePurpose(const Pause& pause);

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
