#include "pipeline/hook_rations.h"

namespace clrsampler {

void HookRations::Use(ProcessKey process, HookPart part, const HookSet* set, bool starts) {
  auto found = rations_.find(process);
  if (found == rations_.end()) {
    const auto full = [&](HookPart its) { return Ration{nullptr, BudgetOf(its, starts)}; };
    found = rations_
                .emplace(process,
                         std::array{full(kHookParts[0]), full(kHookParts[1]), full(kHookParts[2]), full(kHookParts[3])})
                .first;
  }
  found->second[IndexOf(part)].set = set;
}

void HookRations::Forget(ProcessKey process) { rations_.erase(process); }

bool HookRations::Spend(ProcessKey process, HookPart part, MonotonicTime time, uint64_t cost_ns) {
  const auto found = rations_.find(process);
  if (!limited() || found == rations_.end()) return false;
  HookBudget& budget = found->second[IndexOf(part)].budget;
  budget.Spend(time, cost_ns);
  return budget.Exhausted(time);
}

bool HookRations::SpendOther(uint32_t tgid, HookPart part, MonotonicTime time, uint64_t cost_ns) {
  if (!limited()) return false;
  if (others_.size() >= kMaxOthers) {
    absl::erase_if(others_, [time](auto& other) { return !other.second.Exhausted(time); });
  }
  HookBudget& budget = others_.try_emplace({tgid, part}, BudgetOf(part, false)).first->second;
  budget.Spend(time, cost_ns);
  return budget.Exhausted(time);
}

bool HookRations::MustRest(const HookSet* set, HookPart part, MonotonicTime now) {
  if (!limited()) return false;
  for (auto& [process, its] : rations_) {
    Ration& ration = its[IndexOf(part)];
    if (ration.set == set && ration.budget.Exhausted(now)) return true;
  }
  for (auto& [other, budget] : others_) {
    if (other.second == part && budget.Exhausted(now)) return true;
  }
  return false;
}

}  // namespace clrsampler
