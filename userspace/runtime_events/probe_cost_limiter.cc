#include "runtime_events/probe_cost_limiter.h"

namespace clrsampler {

void ProbeCostLimiter::Use(ProcessKey process, HookPart part, const HookSet* set, bool starts) {
  auto found = allowances_.find(process);
  if (found == allowances_.end()) {
    const auto full = [&](HookPart its) { return Allowance{nullptr, BucketOf(its, starts)}; };
    found = allowances_
                .emplace(process,
                         std::array{full(kHookParts[0]), full(kHookParts[1]), full(kHookParts[2]), full(kHookParts[3])})
                .first;
  }
  found->second[IndexOf(part)].set = set;
}

void ProbeCostLimiter::Forget(ProcessKey process) { allowances_.erase(process); }

bool ProbeCostLimiter::Spend(ProcessKey process, HookPart part, MonotonicTime time, uint64_t cost_ns) {
  const auto found = allowances_.find(process);
  if (!limited() || found == allowances_.end()) return false;
  ProbeCostBucket& bucket = found->second[IndexOf(part)].bucket;
  bucket.Spend(time, cost_ns);
  return bucket.Exhausted(time);
}

bool ProbeCostLimiter::SpendOther(uint32_t tgid, HookPart part, MonotonicTime time, uint64_t cost_ns) {
  if (!limited()) return false;
  if (others_.size() >= kMaxOthers) {
    absl::erase_if(others_, [time](auto& other) { return !other.second.Exhausted(time); });
  }
  ProbeCostBucket& bucket = others_.try_emplace({tgid, part}, BucketOf(part, false)).first->second;
  bucket.Spend(time, cost_ns);
  return bucket.Exhausted(time);
}

bool ProbeCostLimiter::MustDetach(const HookSet* set, HookPart part, MonotonicTime now) {
  if (!limited()) return false;
  for (auto& [process, its] : allowances_) {
    Allowance& allowance = its[IndexOf(part)];
    if (allowance.set == set && allowance.bucket.Exhausted(now)) return true;
  }
  for (auto& [other, bucket] : others_) {
    if (other.second == part && bucket.Exhausted(now)) return true;
  }
  return false;
}

}  // namespace clrsampler
