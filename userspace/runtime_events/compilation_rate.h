// Whether a program compiles without end, second after second, or has calmed down. Pure.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_COMPILATION_RATE_H_
#define CLRSAMPLER_RUNTIME_EVENTS_COMPILATION_RATE_H_

#include <cstdint>

#include "os/clock.h"

namespace clrsampler {

// The rate of one image. More than 1,000 in each of three seconds in a row are a storm, fewer than 500 in each of three
// its end.
class CompilationRate {
 public:
  // So many more have ended; the last of them at `time`.
  void Note(MonotonicTime time, uint32_t count);
  // Nothing was seen until `time`.
  void Restart(MonotonicTime time);

  bool storm() const { return storms_ >= kSeconds; }
  bool calm() const { return calms_ >= kSeconds; }

 private:
  static constexpr double kStorm = 1000, kCalm = 500;
  static constexpr int kSeconds = 3;

  MonotonicTime counted_since_, last_ = MonotonicTime::Min();
  uint64_t count_ = 0;          // since then
  int storms_ = 0, calms_ = 0;  // seconds in a row
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_COMPILATION_RATE_H_
