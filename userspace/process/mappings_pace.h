// How often all mappings of a process are looked through, where it keeps changing them. Pure.
#ifndef CLRSAMPLER_PROCESS_MAPPINGS_PACE_H_
#define CLRSAMPLER_PROCESS_MAPPINGS_PACE_H_

#include <cstdint>

#include "os/clock.h"
#include "process/mappings.h"

namespace clrsampler {

// The pace of one reader for one process. Most processes are looked at as soon as something has changed, one with
// 32,000 mappings every six seconds: where a look takes a microsecond for each mapping, that is half a percent of a
// CPU.
class MappingsPace {
 public:
  // Whether something has changed and it is time. If so, the caller looks now.
  bool Due(const MappingTable& mappings, const Clock& clock) {
    if (seen_ == mappings.generation()) return false;
    const uint64_t count = mappings.all().size();
    if (count > kAlways) {
      const MonotonicTime now = clock.Now();
      if (now < next_) return false;
      next_.ns = now.ns + count * kPauseNsEach;
    }
    seen_ = mappings.generation();
    return true;
  }

 private:
  static constexpr uint64_t kAlways = 2048;
  static constexpr uint64_t kPauseNsEach = 200'000;

  uint64_t seen_ = 0;  // a generation; 0: none
  MonotonicTime next_ = MonotonicTime::Min();
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_MAPPINGS_PACE_H_
