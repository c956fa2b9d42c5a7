// Finds the CPUs that have stopped being sampled although they are online. A CPU may be switched off and on again
// between two looks at the list of CPUs, or go through a suspend of the machine. It is in the list all the time, but
// the kernel has taken its events down with it (perf_event_exit_cpu, kernel/events/core.c) and does not start them
// again.
#ifndef CLRSAMPLER_CAPTURE_CPU_PULSE_H_
#define CLRSAMPLER_CAPTURE_CPU_PULSE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"

namespace clrsampler {

// Pure. A CPU that is sampled is hit all the time that it is busy. Where it is idle its clock may sleep with it: in a
// virtual machine whose hypervisor runs the guest's timers late (PVM) for seconds.
class CpuPulse {
 public:
  // Gives the busy time of each CPU so far, by number; 0: not known.
  using BusyNs = absl::FunctionRef<std::vector<uint64_t>()>;

  // To be called some times a second. `now_ns`: CLOCK_MONOTONIC. `hits`: of each CPU so far, by number. Gives those of
  // `attached` whose number has not changed for a second and three calls, and which were busy for a tenth of a second
  // and four periods of that. They count as new from then on. `busy_ns` is asked where a number has stood still so
  // long.
  std::vector<int> Silent(uint64_t now_ns, std::span<const int> attached, std::span<const uint64_t> hits,
                          uint64_t period_ns, BusyNs busy_ns);

 private:
  struct Seen {
    uint64_t hits = 0;
    uint64_t since_ns = 0;
    uint64_t calls = 0;               // since then
    std::optional<uint64_t> busy_ns;  // when it was first asked since then
  };
  std::map<int, Seen> seen_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_CPU_PULSE_H_
