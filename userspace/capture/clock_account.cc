#include "capture/clock_account.h"

#include <algorithm>
#include <utility>

namespace clrsampler {

void ClockAccount::Update(uint64_t now_ns, std::span<const int> running, std::span<const uint64_t> hits,
                          uint64_t period_ns) {
  std::map<int, Mark> now;
  for (const int cpu : running) {
    if (cpu < 0 || static_cast<size_t>(cpu) >= hits.size()) continue;
    const Mark mark = {now_ns, hits[static_cast<size_t>(cpu)]};
    now[cpu] = mark;
    Cpu& account = cpus_[cpu];
    const auto before = last_.find(cpu);
    if (before == last_.end() || period_ns == 0) continue;
    account.due += static_cast<double>(mark.ns - std::min(before->second.ns, mark.ns)) / static_cast<double>(period_ns);
    account.ran += mark.hits - std::min(before->second.hits, mark.hits);
  }
  last_ = std::move(now);
}

uint64_t ClockAccount::due() const {
  double sum = 0;
  for (const auto& [cpu, account] : cpus_) sum += account.due;
  return static_cast<uint64_t>(sum);
}

uint64_t ClockAccount::ran() const {
  uint64_t sum = 0;
  for (const auto& [cpu, account] : cpus_) sum += account.ran;
  return sum;
}

}  // namespace clrsampler
