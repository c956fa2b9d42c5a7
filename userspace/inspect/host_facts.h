// The facts that profiling depends on outside of the processes: the kernel, its settings, our privileges, memory.
#ifndef CLRSAMPLER_INSPECT_HOST_FACTS_H_
#define CLRSAMPLER_INSPECT_HOST_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/feature_report.h"

namespace clrsampler {

inline constexpr int kDefaultFrequencyHz = 99;  // of a recording whose rate nobody named

struct HostFacts {
  std::string kernel;        // "6.1.0-18-amd64"
  std::string architecture;  // "x86_64"
  bool root = false;
  uint64_t capabilities = 0;  // OwnCapabilities
  FeatureReport features;
  absl::Status return_probes;  // whether they are harmless (capture/return_probes.h)
  // nullopt: no such setting, or not readable.
  std::optional<int64_t> perf_event_paranoid;
  bool perf_events_refused = false;  // those of a CPU, to us
  std::optional<int64_t> perf_event_mlock_kb;
  std::optional<int64_t> perf_event_max_sample_rate;
  std::optional<int64_t> perf_cpu_time_max_percent;
  std::optional<int64_t> kptr_restrict;
  std::optional<int64_t> ptrace_scope;  // Yama; nullopt: the kernel has no Yama
  bool tracefs = false;
  int cpus = 0;
  uint64_t ring_bytes = 0;       // of a recording with the default frequency
  uint64_t available_bytes = 0;  // MemAvailable; 0: not known
  bool own_pid_namespace = false;
  std::vector<uint32_t> other_agents;  // processes that run this program, without ourselves
};

// The effective ones of this thread, a bit each (linux/capability.h); 0: not known.
uint64_t OwnCapabilities();

// The roots are "/proc" and "/sys" outside tests. Features and privileges are always those of this process and kernel.
HostFacts ReadHostFacts(const std::string& proc_root, const std::string& sys_root);

}  // namespace clrsampler

#endif  // CLRSAMPLER_INSPECT_HOST_FACTS_H_
