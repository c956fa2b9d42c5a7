// CPU time as the scheduler accounts it: what the number of samples is checked against.
#ifndef CLRSAMPLER_PROCESS_CPU_TIME_H_
#define CLRSAMPLER_PROCESS_CPU_TIME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace clrsampler {

// User and system time of all threads of a process, dead ones included, in ns at the resolution of a clock tick (10
// ms).
absl::StatusOr<uint64_t> ReadProcessCpuNs(const std::string& proc_root, uint32_t pid);

// Time that all CPUs together were not idle, in ns at the resolution of a clock tick for each CPU.
absl::StatusOr<uint64_t> ReadHostBusyNs(const std::string& proc_root);

// The same of each CPU by its number; 0: it is not online.
absl::StatusOr<std::vector<uint64_t>> ReadCpusBusyNs(const std::string& proc_root);

// Time that all CPUs together had something to run and a hypervisor ran something else; in the same ticks. 0 where it
// does not say.
absl::StatusOr<uint64_t> ReadHostStolenNs(const std::string& proc_root);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_CPU_TIME_H_
