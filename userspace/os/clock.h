// The time of the profile: CLOCK_MONOTONIC, the clock of BPF's bpf_ktime_get_ns, of jitdump and of our perf events.
#ifndef CLRSAMPLER_OS_CLOCK_H_
#define CLRSAMPLER_OS_CLOCK_H_

#include <time.h>

#include <compare>
#include <cstdint>
#include <limits>

namespace clrsampler {

// The lengths of a millisecond and a second on every clock here.
inline constexpr uint64_t kMillisecondNs = 1'000'000;
inline constexpr uint64_t kSecondNs = 1000 * kMillisecondNs;

struct MonotonicTime {
  uint64_t ns = 0;

  static constexpr MonotonicTime Min() { return {0}; }
  static constexpr MonotonicTime Max() { return {std::numeric_limits<uint64_t>::max()}; }
  friend constexpr auto operator<=>(MonotonicTime, MonotonicTime) = default;
};

// The time of a clock of the kernel now, in nanoseconds: CLOCK_REALTIME gives the time since 1970.
uint64_t NowNs(clockid_t clock);

// Passed in wherever time matters, so that tests decide what time it is.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime Now() const = 0;
};

class SystemClock : public Clock {
 public:
  MonotonicTime Now() const override;
};

class FakeClock : public Clock {
 public:
  MonotonicTime Now() const override { return now_; }
  void Set(MonotonicTime now) { now_ = now; }
  void Advance(uint64_t ns) { now_.ns += ns; }

 private:
  MonotonicTime now_{1};
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_CLOCK_H_
