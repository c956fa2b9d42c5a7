// How often the sampling clock ran where a CPU was busy, and how often it should have. The two differ where a CPU gets
// no time to run its timers although the scheduler counts the time as used. A hypervisor held it (its own figure for
// that is counted, too), or the whole machine stood still. Samples are then missing that nothing has lost. Idle CPUs do
// not count: they may sleep through their timers, and there is nothing to be sampled.
#ifndef CLRSAMPLER_PIPELINE_CLOCK_ACCOUNT_H_
#define CLRSAMPLER_PIPELINE_CLOCK_ACCOUNT_H_

#include <cstdint>

#include "process/cpu_time.h"

namespace clrsampler {

// Pure.
class ClockAccount {
 public:
  // The time of the host's CPUs, and the runs that met one busy, both of any beginning; counting begins with the first
  // call. `period_ns`: since the last one. A number that shrinks, as when a CPU goes, counts as none.
  void Update(const HostCpuTime& host, uint64_t runs, uint64_t period_ns);

  uint64_t due() const { return static_cast<uint64_t>(due_); }
  uint64_t ran() const { return ran_; }
  uint64_t stolen_ns() const { return stolen_; }

 private:
  bool begun_ = false;
  uint64_t busy_ns_ = 0;
  uint64_t stolen_ns_ = 0;
  uint64_t runs_ = 0;
  double due_ = 0;
  uint64_t ran_ = 0;
  uint64_t stolen_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_CLOCK_ACCOUNT_H_
