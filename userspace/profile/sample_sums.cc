#include "profile/sample_sums.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "status/status.h"

namespace clrsampler {

absl::Status SampleSums::MakeRoom() {
  if (rows_.size() >= limits_.rows && by_thread_) PutThreadsTogether();
  if (rows_.size() < limits_.rows && builder_.model().nodes.size() < limits_.nodes) return absl::OkStatus();
  return WithHint(absl::ResourceExhaustedError("this time has more distinct stacks than one profile may have"),
                  "ask for a shorter time, or for one process or container");
}

void SampleSums::Add(ThreadIndex thread, NodeIndex node, SampleState state, uint64_t weight) {
  uint64_t& sum = rows_[{thread, node, state}];
  sum += std::min(weight, kMaxTotalWeight - std::min(sum, kMaxTotalWeight));
}

void SampleSums::Finish() {
  std::vector<std::pair<Key, uint64_t>> rows(rows_.begin(), rows_.end());
  rows_ = {};
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.thread, a.first.state, a.first.node) <
           std::tie(b.first.thread, b.first.state, b.first.node);
  });
  for (const auto& [key, weight] : rows) {
    builder_.Add({.thread = key.thread, .stack = key.node, .state = key.state, .weight = weight});
  }
}

void SampleSums::PutThreadsTogether() {
  by_thread_ = false;
  const std::vector<ModelThread> apart = builder_.model().threads;
  const absl::flat_hash_map<Key, uint64_t> rows = std::exchange(rows_, {});
  for (const auto& [key, weight] : rows) {
    ModelThread process = apart[key.thread];
    process.tid = 0;
    process.name = 0;
    Add(builder_.Thread(process), key.node, key.state, weight);
  }
}

}  // namespace clrsampler
