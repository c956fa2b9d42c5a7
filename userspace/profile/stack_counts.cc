#include "profile/stack_counts.h"

#include <algorithm>

namespace clrsampler {
namespace {

constexpr size_t kStretches = 20;

}  // namespace

StackCounter::StackCounter(const StackTree& tree, std::span<const StackGroup> groups)
    : tree_(tree), groups_(groups), outermost_(tree.parent.size(), false) {
  for (uint32_t i = 1; i < tree.parent.size(); ++i) {
    if (tree.method[i] == StackTree::kNoMethod) continue;
    uint32_t above = tree.parent[i];
    while (tree.method[above] != StackTree::kNoMethod && tree.method[above] != tree.method[i]) {
      above = tree.parent[above];
    }
    outermost_[i] = tree.method[above] == StackTree::kNoMethod;
  }
}

std::vector<uint64_t> StackCounter::Count(std::span<const uint64_t> self_weights) const {
  std::vector<uint64_t> counts(size(), 0);
  for (size_t i = tree_.parent.size(); i-- > 0;) {
    const uint64_t weight = counts[stack(i)] += self_weights[i];
    if (i == 0) break;
    counts[stack(tree_.parent[i])] += weight;
    if (tree_.method[i] == StackTree::kNoMethod) continue;
    counts[self(tree_.method[i])] += self_weights[i];
    if (outermost_[i]) counts[total(tree_.method[i])] += weight;
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (const uint32_t stack : groups_[i].self) counts[group(i)] += self_weights[stack];
    for (const uint32_t whole : groups_[i].total) counts[group(i)] += counts[stack(whole)];
  }
  return counts;
}

StackCounts CountStacks(const ProfileModel& model, std::span<const uint32_t> rows, const StackTree& tree,
                        const StackCounter& counter) {
  StackCounts counts;
  std::vector<uint64_t> self(tree.parent.size(), 0);
  for (size_t row = 0; row < rows.size(); ++row) self[tree.stands_in[rows[row]]] += model.samples.weight_of(row);
  counts.values = counter.Count(self);
  counts.chi_square.assign(counter.size(), 0);
  if (model.samples.time_ns.empty() || model.meta.unit != WeightUnit::kSamples) return counts;

  uint64_t end = 0;
  for (const uint64_t time : model.samples.time_ns) end = time == kNoTime ? end : std::max(end, time + 1);
  // Rounded up, so that the last nanosecond is in the last one; in whole numbers, which have no limit at 2^53.
  const uint64_t stretch_ns = end / kStretches + (end % kStretches != 0 ? 1 : 0);
  std::vector<std::vector<uint32_t>> stretches(kStretches);
  for (uint32_t row = 0; row < rows.size(); ++row) {
    const uint64_t time = model.samples.time_ns[row];
    if (time == kNoTime) return counts;  // what has no time is missing from the end
    stretches[time / stretch_ns].push_back(row);
  }
  std::vector<double> chi_square(counter.size(), 0);
  size_t used = 0;
  for (const std::vector<uint32_t>& stretch : stretches) {
    if (stretch.empty()) continue;
    ++used;
    std::fill(self.begin(), self.end(), 0);
    uint64_t total = 0;
    for (const uint32_t row : stretch) {
      self[tree.stands_in[rows[row]]] += model.samples.weight_of(row);
      total += model.samples.weight_of(row);
    }
    const std::vector<uint64_t> values = counter.Count(self);
    const double part = static_cast<double>(total) / static_cast<double>(model.total_weight);
    for (size_t i = 0; i < values.size(); ++i) {
      if (counts.values[i] == 0) continue;
      const double share = static_cast<double>(counts.values[i]) / static_cast<double>(model.total_weight);
      const double expected = static_cast<double>(counts.values[i]) * part;
      const double difference = static_cast<double>(values[i]) - expected;
      chi_square[i] += difference * difference / (expected * std::max(1 - share, 1e-9));
    }
  }
  if (used < kStretches / 2) return counts;  // too few to tell
  counts.chi_square = std::move(chi_square);
  counts.degrees = static_cast<double>(used - 1);
  return counts;
}

}  // namespace clrsampler
