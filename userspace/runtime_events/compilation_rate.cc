#include "runtime_events/compilation_rate.h"

#include <algorithm>
#include <utility>

#include "os/clock.h"

namespace clrsampler {

void CompilationRate::Note(MonotonicTime time, uint32_t count) {
  const MonotonicTime last = std::exchange(last_, time);
  if (last == MonotonicTime::Min()) counted_since_ = time;
  count_ += count;
  const auto seconds_since = [time](MonotonicTime then) {
    return static_cast<double>(time.ns - std::min(time, then).ns) / static_cast<double>(kSecondNs);
  };
  if (const double idle = seconds_since(std::max(last, counted_since_)); idle >= 1) {
    storms_ = 0;
    calms_ += static_cast<int>(std::min<double>(idle, kSeconds));
    count_ = count;
    counted_since_ = time;
  } else if (const double seconds = seconds_since(counted_since_); seconds >= 1) {
    const double rate = static_cast<double>(std::exchange(count_, 0)) / seconds;
    counted_since_ = time;
    storms_ = rate > kStorm ? storms_ + 1 : 0;
    calms_ = rate < kCalm ? calms_ + 1 : 0;
  }
}

void CompilationRate::Restart(MonotonicTime time) {
  counted_since_ = last_ = time;
  count_ = 0;
  storms_ = calms_ = 0;
}

}  // namespace clrsampler
