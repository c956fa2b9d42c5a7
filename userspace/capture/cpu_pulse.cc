#include "capture/cpu_pulse.h"

#include <algorithm>

namespace clrsampler {
namespace {

// Calls, too: a machine whose hypervisor stands still sees its own timers late as well, and we then come late
// ourselves.
constexpr uint64_t kMinCalls = 3;
constexpr uint64_t kMinNs = 1'000'000'000;
constexpr uint64_t kPeriods = 4;

}  // namespace

std::vector<int> CpuPulse::Silent(uint64_t now_ns, std::span<const int> attached, std::span<const uint64_t> hits,
                                  uint64_t period_ns) {
  const uint64_t enough_ns = std::max(kMinNs, kPeriods * period_ns);
  std::map<int, Seen> now;
  std::vector<int> silent;
  for (const int cpu : attached) {
    if (cpu < 0 || static_cast<size_t>(cpu) >= hits.size()) continue;
    const uint64_t count = hits[static_cast<size_t>(cpu)];
    const auto before = seen_.find(cpu);
    const bool stands = before != seen_.end() && before->second.hits == count;
    const Seen seen = stands ? Seen{count, before->second.since_ns, before->second.calls + 1} : Seen{count, now_ns, 0};
    if (seen.calls < kMinCalls || now_ns < seen.since_ns + enough_ns) {
      now[cpu] = seen;
    } else {
      silent.push_back(cpu);
    }
  }
  seen_ = std::move(now);
  return silent;
}

}  // namespace clrsampler
