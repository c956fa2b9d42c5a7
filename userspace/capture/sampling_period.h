// The time between two samples of a CPU, and so the CPU time that a sample stands for.
#ifndef CLRSAMPLER_CAPTURE_SAMPLING_PERIOD_H_
#define CLRSAMPLER_CAPTURE_SAMPLING_PERIOD_H_

#include <cstdint>

namespace clrsampler {

// The period of a rate of 1 Hz and more. It is 0.618 % above its fraction of a second. Programs work at whole fractions
// of a second (timers, frames, polls). A clock that is one too meets each of them at the same few points of its work
// for as long as it is watched. A program of 10 ms in each 100 ms then has between none and 10 times its share of
// samples at 10 Hz. At 19 Hz it has between 53 % and 147 %, in ten minutes as in ten seconds. With this period it has
// 97 % to 103 % and 99 % to 101 % in ten minutes (sampling_period_test: each beat from 1 to 1000 Hz). It is the golden
// section, which no small fraction comes near, of the per cent.
constexpr uint64_t SamplingPeriodNs(uint32_t frequency_hz) {
  return 1'006'180'340 / static_cast<uint64_t>(frequency_hz);
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_SAMPLING_PERIOD_H_
