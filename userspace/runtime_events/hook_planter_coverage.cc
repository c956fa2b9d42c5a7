// The work that probes of estimated parts do not see, as they are detached.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "runtime_events/hook_planter.h"

namespace clrsampler {

namespace {

// Reading counts takes half a percent of a CPU at most, for all processes. It may take 5 ms of that in advance, where
// probes have just gone or are back.
constexpr uint64_t kCountsShare = 200, kMostCountsDebtNs = 1'000'000'000;

}  // namespace

void HookPlanter::ReadCounts(ProcessKey key) {
  HookCoverage& coverage = states_.Find(key)->coverage[IndexOf(HookPart::kAllocations)];
  if (coverage.CountsAreUnchanged()) return coverage.NoteUnchangedCounts();
  const MonotonicTime begin = clock_.Now();
  if (coverage.CountsFailed() || counts_paid_.ns > begin.ns + kMostCountsDebtNs) return coverage.SkipCounts();
  std::optional<ThreadCounts> counts = options_.allocated_bytes(key);
  const uint64_t took_ns = clock_.Now().ns - begin.ns;
  counts_paid_.ns = std::max(counts_paid_.ns, begin.ns) + took_ns * kCountsShare;
  coverage.NoteCounts(std::move(counts));
}

// Those that `is_wanted` holds for. The ones that have waited longest come first, as not all may have their turn.
template <typename Predicate>
std::vector<ProcessKey> HookPlanter::CountedProcesses(Predicate&& is_wanted) const {
  std::vector<std::pair<std::optional<MonotonicTime>, ProcessKey>> due;
  for (const auto& [key, state] : states_) {
    const HookCoverage& coverage = state.coverage[IndexOf(HookPart::kAllocations)];
    if (!state.selected || !coverage.begun()) continue;
    if (!is_wanted(coverage, state.hooked[IndexOf(HookPart::kAllocations)].get())) continue;
    due.emplace_back(coverage.counts_due(), key);
  }
  std::ranges::sort(due, {}, [](const auto& one) { return std::make_pair(one.first, one.second.incarnation); });
  std::vector<ProcessKey> keys;
  keys.reserve(due.size());
  for (const auto& [at, key] : due) keys.push_back(key);
  return keys;
}

// Reads the counts of threads. Nobody counts what exceptions do.
template <typename Predicate>
void HookPlanter::NoteCounts(HookPart part, Predicate&& is_wanted) {
  if (part != HookPart::kAllocations || options_.allocated_bytes == nullptr) return;
  for (const ProcessKey key : CountedProcesses(is_wanted)) ReadCounts(key);
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
    if (!state.selected) continue;
    const bool complete = its->set->planted() && !its->set->detached();
    state.coverage[IndexOf(part)].Note(complete, now, options_.process_cpu_ns(key.tgid));
  }
}

void HookPlanter::NoteCountsDue(MonotonicTime now) {
  if (options_.allocated_bytes == nullptr) return;
  const auto is_due = [now](const HookCoverage& coverage, const Hooked*) {
    const std::optional<MonotonicTime> at = coverage.counts_due();
    return at && *at <= now;
  };
  for (const ProcessKey key : CountedProcesses(is_due)) {
    if (counts_paid_ > now) return;
    ReadCounts(key);
  }
}

void HookPlanter::NoteThread(ProcessKey key, uint32_t tid, bool ends) {
  main_loop_.Check();
  ProcessState* const state = states_.Find(key);
  if (state == nullptr) return;
  HookCoverage& coverage = state->coverage[IndexOf(HookPart::kAllocations)];
  ends ? coverage.NoteThreadEnded(tid) : coverage.NoteThreadBegan(tid);
}

void HookPlanter::NoteCountsOf(const Hooked& hooked, HookPart part) {
  NoteCounts(part, [&](const HookCoverage&, const Hooked* its) { return its == &hooked; });
}

}  // namespace clrsampler
