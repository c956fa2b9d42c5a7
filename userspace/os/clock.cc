#include "os/clock.h"

namespace clrsampler {

uint64_t NowNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

MonotonicTime SystemClock::Now() const { return {NowNs(CLOCK_MONOTONIC)}; }

}  // namespace clrsampler
