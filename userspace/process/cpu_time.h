// CPU time as the scheduler accounts it: what the number of samples is checked against.
#ifndef CLRSAMPLER_PROCESS_CPU_TIME_H_
#define CLRSAMPLER_PROCESS_CPU_TIME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "os/tape.h"

namespace clrsampler {

// User and system time of all threads of a process, dead ones included, in ns. nullopt: there is no such process any
// more. From the process's CPU clock (man 3 clock_getcpuclockid): one call where /proc/PID/stat takes three and is
// exact to 10 ms.
std::optional<uint64_t> ProcessCpuNs(uint32_t pid);

// The time of all CPUs together, in ns at the resolution of a clock tick for each CPU.
struct HostCpuTime {
  uint64_t busy_ns = 0;    // CpuTicks::busy
  uint64_t stolen_ns = 0;  // there was something to run, and a hypervisor ran something else; 0: it does not say
  std::vector<uint64_t> cpu_busy_ns;  // of each CPU by its number; 0: it is not online
};

// `tape`: as TargetFiles'.
absl::StatusOr<HostCpuTime> ReadHostCpuTime(const std::string& proc_root, Tape* tape = nullptr);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_CPU_TIME_H_
