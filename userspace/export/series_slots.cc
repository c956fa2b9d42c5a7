#include "export/series_slots.h"

#include <algorithm>
#include <set>
#include <utility>

namespace clrsampler {
namespace {

constexpr double kNewest = 0.3;
constexpr double kMuchMore = 2;  // times as active as the one that has to go

}  // namespace

SeriesSlots::SeriesSlots(size_t most, uint64_t grace_ns, uint64_t quiet_ns,
                         std::function<bool(uint32_t pid)> still_there)
    : most_(most), grace_ns_(grace_ns), quiet_ns_(quiet_ns), still_there_(std::move(still_there)) {
  for (size_t i = most; i-- > 0;) free_.push_back(i);
}

void SeriesSlots::Remember(const std::vector<SeriesCandidate>& candidates, uint64_t now_ns) {
  for (auto& [key, known] : known_) known.mean *= 1 - kNewest;
  for (const SeriesCandidate& candidate : candidates) {
    const auto [entry, is_new] = known_.try_emplace(candidate.key);
    Known& known = entry->second;
    if (is_new) known.label = candidate.label;
    known.mean += kNewest * candidate.activity;
    ++known.windows;
    known.last_ns = now_ns;
    known.pid = candidate.pid;
    // A series that was quiet for so long that it was taken for gone, and is not.
    if (!candidate.ended) known.ended_ns.reset();
    if (candidate.ended && !known.ended_ns) known.ended_ns = now_ns;
  }
}

void SeriesSlots::Free(Entry entry, Decision& decision) {
  decision.freed.push_back(*entry->second.slot);
  free_.push_back(*entry->second.slot);
  entry->second.slot.reset();
}

void SeriesSlots::Forget(uint64_t now_ns, Decision& decision) {
  for (auto it = known_.begin(); it != known_.end();) {
    Known& known = it->second;
    const bool seen = known.last_ns == now_ns;
    if (known.slot && !seen && !known.ended_ns) {
      const bool gone = still_there_ ? !still_there_(known.pid) : now_ns - known.last_ns >= quiet_ns_;
      if (gone) known.ended_ns = now_ns;
    }
    if (known.slot && known.ended_ns && now_ns - *known.ended_ns >= grace_ns_) Free(it, decision);
    const bool forgotten = !known.slot && (known.ended_ns ? !seen : now_ns - known.last_ns >= quiet_ns_);
    it = forgotten ? known_.erase(it) : std::next(it);
  }
}

std::optional<size_t> SeriesSlots::FindSlot(double mean, Decision& decision) {
  if (free_.empty()) {
    Entry least = known_.end();
    const auto rank = [](const Known& known) {
      return std::pair(known.ended_ns ? 0 : 1, known.ended_ns ? static_cast<double>(*known.ended_ns) : known.mean);
    };
    for (Entry it = known_.begin(); it != known_.end(); ++it) {
      if (!it->second.slot) continue;
      if (least == known_.end() || rank(it->second) < rank(least->second)) least = it;
    }
    if (least == known_.end()) return std::nullopt;
    if (!least->second.ended_ns && mean <= kMuchMore * least->second.mean) return std::nullopt;
    Free(least, decision);
  }
  const size_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void SeriesSlots::FreeLabel(const std::string& label, Decision& decision) {
  for (Entry it = known_.begin(); it != known_.end(); ++it) {
    if (it->second.slot && it->second.label == label) Free(it, decision);
  }
}

void SeriesSlots::Relabel(const std::vector<SeriesCandidate>& candidates, Decision& decision) {
  for (const SeriesCandidate& candidate : candidates) {
    const Entry entry = known_.find(candidate.key);
    if (entry == known_.end()) continue;
    Known& known = entry->second;
    if (known.label == candidate.label || known.label_changes >= kMaxLabelChanges) continue;
    ++known.label_changes;
    if (known.slot) {
      FreeLabel(candidate.label, decision);
      decision.freed.push_back(*known.slot);
      known.is_taken_now = true;
    }
    known.label = candidate.label;
  }
}

void SeriesSlots::Admit(const std::vector<SeriesCandidate>& candidates, Decision& decision) {
  std::vector<std::pair<double, size_t>> newcomers;  // most active first
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto found = known_.find(candidates[i].key);
    if (found == known_.end() || found->second.slot || found->second.ended_ns) continue;
    const bool first_sight = candidates[i].eager && free_.size() * 2 > most_;
    if (found->second.windows >= 2 || first_sight) newcomers.emplace_back(-found->second.mean, i);
  }
  std::sort(newcomers.begin(), newcomers.end());
  for (const auto& [mean, index] : newcomers) {
    Known& newcomer = known_.find(candidates[index].key)->second;
    // A process of the same name has used the pid again. The old process has ended, whatever was reported.
    FreeLabel(newcomer.label, decision);
    newcomer.slot = FindSlot(-mean, decision);
    if (!newcomer.slot) break;
    newcomer.is_taken_now = true;
  }
}

SeriesSlots::Decision SeriesSlots::Next(const std::vector<SeriesCandidate>& candidates, uint64_t now_ns) {
  Decision decision;
  Remember(candidates, now_ns);
  Forget(now_ns, decision);
  Relabel(candidates, decision);
  Admit(candidates, decision);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Entry entry = known_.find(candidates[i].key);
    decision.slot_of.push_back(entry == known_.end() ? std::nullopt : entry->second.slot);
    if (!decision.slot_of.back() || !std::exchange(entry->second.is_taken_now, false)) continue;
    decision.taken.push_back({*entry->second.slot, i, entry->second.label});
  }
  return decision;
}

}  // namespace clrsampler
