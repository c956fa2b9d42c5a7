// Which CPUs have stopped being sampled although they are online. A CPU that is switched off and on again between two
// looks at the list of CPUs, or that went through a suspend of the machine, is in the list all the time, but the kernel
// has taken its events down with it (perf_event_exit_cpu, kernel/events/core.c) and does not start them again.
#ifndef CLRSAMPLER_CAPTURE_CPU_PULSE_H_
#define CLRSAMPLER_CAPTURE_CPU_PULSE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace clrsampler {

// Pure. The sampling clock hits idle CPUs, too, so a CPU that is sampled is hit all the time.
class CpuPulse {
 public:
  // To be called some times a second. `now_ns`: CLOCK_MONOTONIC. `hits`: of each CPU so far, by number. Those of
  // `attached` whose number has not changed for a second, three calls and four periods; they count as new from then on.
  std::vector<int> Silent(uint64_t now_ns, std::span<const int> attached, std::span<const uint64_t> hits,
                          uint64_t period_ns);

 private:
  struct Seen {
    uint64_t hits = 0;
    uint64_t since_ns = 0;
    uint64_t calls = 0;  // since then
  };
  std::map<int, Seen> seen_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_CPU_PULSE_H_
