#include "capture/cpu_pulse.h"

#include <algorithm>

namespace clrsampler {
namespace {

// Late calls count, too. A machine whose hypervisor stands still sees its own timers late as well, and we then come
// late ourselves.
constexpr uint64_t kMinCalls = 3;
constexpr uint64_t kMinNs = 1'000'000'000;
constexpr uint64_t kMinBusyNs = 100'000'000;  // ten ticks, in which it is accounted for
constexpr uint64_t kPeriods = 4;

}  // namespace

std::vector<int> CpuPulse::Silent(uint64_t now_ns, std::span<const int> attached, std::span<const uint64_t> hits,
                                  uint64_t period_ns, BusyNs busy_ns) {
  std::map<int, Seen> now;
  std::vector<int> silent;
  std::optional<std::vector<uint64_t>> busy;
  for (const int cpu : attached) {
    const auto number = static_cast<size_t>(cpu);
    if (cpu < 0 || number >= hits.size()) continue;
    const auto before = seen_.find(cpu);
    if (before == seen_.end() || before->second.hits != hits[number]) {
      now[cpu] = {hits[number], now_ns, 0, std::nullopt};
      continue;
    }
    Seen seen = before->second;
    ++seen.calls;
    if (seen.calls >= kMinCalls && now_ns >= seen.since_ns + kMinNs) {
      if (!busy) busy = busy_ns();
      const uint64_t busy_now = number < busy->size() ? (*busy)[number] : 0;
      if (!seen.busy_ns) seen.busy_ns = busy_now;
      if (busy_now >= *seen.busy_ns + std::max(kMinBusyNs, kPeriods * period_ns)) {
        silent.push_back(cpu);
        continue;
      }
    }
    now[cpu] = seen;
  }
  seen_ = std::move(now);
  return silent;
}

}  // namespace clrsampler
