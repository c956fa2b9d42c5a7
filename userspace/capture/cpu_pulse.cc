#include "capture/cpu_pulse.h"

#include <algorithm>

namespace clrsampler {
namespace {

// A machine whose hypervisor stands still for seconds sees its own timers late as well.
constexpr uint64_t kMinCalls = 3;
constexpr uint64_t kPeriods = 4;
constexpr uint64_t kCallNs = 1'000'000'000;

}  // namespace

std::vector<int> CpuPulse::Silent(std::span<const int> attached, std::span<const uint64_t> hits, uint64_t period_ns) {
  const uint64_t enough = std::max(kMinCalls, kPeriods * period_ns / kCallNs + 1);
  std::map<int, Seen> now;
  std::vector<int> silent;
  for (const int cpu : attached) {
    if (cpu < 0 || static_cast<size_t>(cpu) >= hits.size()) continue;
    const uint64_t count = hits[static_cast<size_t>(cpu)];
    const auto before = seen_.find(cpu);
    const bool stands = before != seen_.end() && before->second.hits == count;
    const uint64_t unchanged = stands ? before->second.unchanged + 1 : 0;
    if (unchanged < enough) {
      now[cpu] = {count, unchanged};
    } else {
      silent.push_back(cpu);
    }
  }
  seen_ = std::move(now);
  return silent;
}

}  // namespace clrsampler
