// The work that probes of estimated parts do not see, as they are detached.
#include <optional>
#include <utility>
#include <vector>

#include "runtime_events/hook_planter.h"

namespace clrsampler {

// Reads the counts of threads in processes that `is_wanted` holds for. Nobody counts what exceptions do.
template <typename Predicate>
void HookPlanter::NoteCounts(HookPart part, Predicate&& is_wanted) {
  if (part != HookPart::kAllocations || options_.allocated_bytes == nullptr) return;
  for (auto& [key, state] : states_) {
    HookCoverage& coverage = state.coverage[IndexOf(part)];
    if (!coverage.begun() || !is_wanted(coverage, state.hooked[IndexOf(part)].get())) continue;
    coverage.NoteCounts(options_.allocated_bytes(key));
  }
}

void HookPlanter::NoteUnseen() {
  main_loop_.Check();
  for (const HookPart part : kHookParts) {
    if (!IsEstimated(part) || !Wants(part)) continue;
    NoteCoverage(nullptr, part, clock_.Now());
    NoteCounts(part, [](const HookCoverage& coverage, const Hooked*) { return !coverage.complete(); });
  }
}

HookCoverage::Whole HookPlanter::TakeWhole(ProcessKey key, HookPart part, uint64_t seen, uint64_t hits, bool ends) {
  main_loop_.Check();
  ProcessState* const state = states_.Find(key);
  if (state == nullptr) return {};
  HookCoverage& coverage = state->coverage[IndexOf(part)];
  if (!coverage.begun()) return {};
  const HookCoverage::Whole whole = coverage.Take(seen, CostNs(part, hits, HookedOf(key, part)), ends);
  counters_.counted_bytes += whole.counted;
  return whole;
}

std::vector<ProcessKey> HookPlanter::ProcessesWith(HookPart part) const {
  std::vector<ProcessKey> keys;
  for (const auto& [key, state] : states_) {
    if (state.coverage[IndexOf(part)].begun()) keys.push_back(key);
  }
  return keys;
}

// The coverage of all processes with these hooks. nullptr: of all that have hooks of the part.
void HookPlanter::NoteCoverage(const Hooked* hooked, HookPart part, MonotonicTime now) {
  for (auto& [key, state] : states_) {
    const Hooked* its = state.hooked[IndexOf(part)].get();
    if (its == nullptr || its->set == nullptr || (hooked != nullptr && its != hooked)) continue;
    const bool complete = its->set->planted() && !its->set->detached();
    state.coverage[IndexOf(part)].Note(complete, now, options_.process_cpu_ns(key.tgid));
  }
}

void HookPlanter::NoteCountsDue() {
  NoteCounts(HookPart::kAllocations,
             [](const HookCoverage& coverage, const Hooked*) { return coverage.CountsAreDue(); });
}

void HookPlanter::NoteCountsOf(const Hooked& hooked, HookPart part) {
  NoteCounts(part, [&](const HookCoverage&, const Hooked* its) { return its == &hooked; });
}

}  // namespace clrsampler
