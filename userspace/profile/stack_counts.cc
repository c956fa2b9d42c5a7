#include "profile/stack_counts.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace clrsampler {
namespace {

constexpr size_t kShortStretches = StackCounts::kStretches[0];

// Values of stretches of one length, which are put together of short ones, and what they add to chi square.
class ScatterSum {
 public:
  ScatterSum(const ProfileModel& model, const std::vector<uint64_t>& whole, size_t short_stretches)
      : whole_(whole),
        all_(static_cast<double>(model.total_weight)),
        short_stretches_(short_stretches),
        values_(whole.size(), 0),
        chi_square_(whole.size(), 0) {}

  // A short stretch, whose samples weigh `total`.
  void Add(const std::vector<uint64_t>& values, uint64_t total) {
    for (size_t i = 0; i < values.size(); ++i) values_[i] += values[i];
    total_ += total;
    if (++added_ % short_stretches_ == 0) End();
  }

  // Nothing, if too few stretches had samples.
  StackScatter Take() {
    if (used_ < kShortStretches / short_stretches_ / 2) return {};
    return {std::move(chi_square_), static_cast<double>(used_) - 1};
  }

 private:
  void End() {
    if (total_ == 0) return;
    ++used_;
    const double part = static_cast<double>(total_) / all_;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (whole_[i] == 0) continue;
      const double expected = static_cast<double>(whole_[i]) * part;
      const double difference = static_cast<double>(values_[i]) - expected;
      const double share = static_cast<double>(whole_[i]) / all_;
      chi_square_[i] += difference * difference / (expected * std::max(1 - share, 1e-9));
    }
    std::fill(values_.begin(), values_.end(), 0);
    total_ = 0;
  }

  const std::vector<uint64_t>& whole_;
  const double all_;
  const size_t short_stretches_;
  std::vector<uint64_t> values_;  // of the stretch at hand
  uint64_t total_ = 0;
  size_t added_ = 0, used_ = 0;
  std::vector<double> chi_square_;
};

// The rows by their times. Empty: one has none, which is missing from the end.
std::vector<uint32_t> InOrderOfTime(const std::vector<uint64_t>& times) {
  if (std::find(times.begin(), times.end(), kNoTime) != times.end()) return {};
  std::vector<uint32_t> rows(times.size());
  std::iota(rows.begin(), rows.end(), 0);
  const auto earlier = [&](uint32_t a, uint32_t b) { return times[a] < times[b]; };
  if (!std::is_sorted(rows.begin(), rows.end(), earlier)) std::stable_sort(rows.begin(), rows.end(), earlier);
  return rows;
}

// The longest times between two samples that follow each other, longest first, one for each short stretch.
std::vector<uint64_t> LongestGaps(const std::vector<uint64_t>& times, const std::vector<uint32_t>& rows) {
  std::vector<uint64_t> longest;  // a heap whose front is the least
  for (size_t i = 1; i < rows.size(); ++i) {
    const uint64_t gap = times[rows[i]] - times[rows[i - 1]];
    if (gap == 0 || (longest.size() == kShortStretches && gap <= longest.front())) continue;
    if (longest.size() == kShortStretches) {
      std::pop_heap(longest.begin(), longest.end(), std::greater<>());
      longest.pop_back();
    }
    longest.push_back(gap);
    std::push_heap(longest.begin(), longest.end(), std::greater<>());
  }
  std::sort(longest.rbegin(), longest.rend());
  return longest;
}

// The time from which on a gap is long. Gaps are taken out one by one, the longest first, each with one of the
// stretches. It ends where the next gap fits into a stretch of what is left.
uint64_t LongGap(const std::vector<uint64_t>& longest, uint64_t length) {
  // Fewer samples than stretches say nothing about gaps.
  if (longest.size() < kShortStretches) return kNoTime;
  for (size_t i = 0; i < longest.size(); ++i) {
    const uint64_t stretch = length / (kShortStretches - i);
    if (longest[i] <= stretch) return stretch;
    length -= longest[i];
  }
  return kNoTime;
}

// The rows of each short stretch. Empty: not all have times.
std::vector<std::vector<uint32_t>> DivideByTime(const std::vector<uint64_t>& times) {
  const std::vector<uint32_t> rows = InOrderOfTime(times);
  if (rows.empty()) return {};
  const std::vector<uint64_t> longest = LongestGaps(times, rows);
  const uint64_t whole = times[rows.back()] - times[rows.front()];
  const uint64_t long_gap = LongGap(longest, whole);
  uint64_t length = whole;
  for (const uint64_t gap : longest) length -= gap > long_gap ? gap : 0;
  // Rounded up, so that the last nanosecond is in the last one; in whole numbers, which have no limit at 2^53.
  const uint64_t stretch_ns = length / kShortStretches + 1;
  std::vector<std::vector<uint32_t>> stretches(kShortStretches);
  uint64_t at = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint64_t gap = i == 0 ? 0 : times[rows[i]] - times[rows[i - 1]];
    if (gap <= long_gap) at += gap;
    stretches[at / stretch_ns].push_back(rows[i]);
  }
  return stretches;
}

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
  if (model.samples.time_ns.empty() || model.meta.unit != WeightUnit::kSamples) return counts;

  const std::vector<std::vector<uint32_t>> stretches = DivideByTime(model.samples.time_ns);
  if (stretches.empty()) return counts;
  std::vector<ScatterSum> sums;
  for (const size_t of_this_length : StackCounts::kStretches) {
    sums.emplace_back(model, counts.values, kShortStretches / of_this_length);
  }
  for (const std::vector<uint32_t>& stretch : stretches) {
    std::fill(self.begin(), self.end(), 0);
    uint64_t total = 0;
    for (const uint32_t row : stretch) {
      self[tree.stands_in[rows[row]]] += model.samples.weight_of(row);
      total += model.samples.weight_of(row);
    }
    const std::vector<uint64_t> values = counter.Count(self);
    for (ScatterSum& sum : sums) sum.Add(values, total);
  }
  for (size_t i = 0; i < sums.size(); ++i) counts.scatter[i] = sums[i].Take();
  return counts;
}

}  // namespace clrsampler
