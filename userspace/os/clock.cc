#include "os/clock.h"

#include <ctime>

namespace clrsampler {

MonotonicTime SystemClock::Now() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return {static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec)};
}

}  // namespace clrsampler
