#include "store/lane_builder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "store/proportion.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxRanked = 200'000;  // further ones are among the others

// Calls act(step, part of the time) for each step that a time lies in.
template <typename Act>
void ForEachStep(const HistoryLanes& lanes, uint64_t begin, uint64_t end, const Act& act) {
  const uint64_t line_end = lanes.begin_unix_ns + lanes.step_ns * lanes.steps;
  uint64_t at = std::max(begin, lanes.begin_unix_ns);
  end = std::min(std::max(end, begin + 1), line_end);
  while (at < end) {
    const size_t step = static_cast<size_t>((at - lanes.begin_unix_ns) / lanes.step_ns);
    const uint64_t next = std::min(end, lanes.begin_unix_ns + (step + 1) * lanes.step_ns);
    act(step, at - begin, next - begin);
    at = next;
  }
}

}  // namespace

LaneBuilder::LaneBuilder(uint64_t begin_unix_ns, uint64_t step_ns, size_t steps) : ranked_(1) {
  lanes_.begin_unix_ns = begin_unix_ns;
  lanes_.step_ns = step_ns;
  lanes_.steps = steps;
  lanes_.covered.assign(steps, false);
}

uint32_t LaneBuilder::Thread(const HistoryLanes::Thread& thread, uint64_t started_boot_ns) {
  std::string key =
      absl::StrCat(thread.pid, " ", started_boot_ns, " ", thread.tid, " ", thread.comm, "\n", thread.name);
  if (const auto found = ids_.find(key); found != ids_.end()) return found->second;
  if (ranked_.size() >= kMaxRanked) return 0;
  const uint32_t id = static_cast<uint32_t>(ranked_.size());
  ids_.emplace(std::move(key), id);
  ranked_.push_back(thread);
  ranked_.back().total_ns = 0;
  return id;
}

void LaneBuilder::Choose(size_t max_threads) {
  std::vector<uint32_t> order(ranked_.size() - 1);
  std::iota(order.begin(), order.end(), 1u);
  std::erase_if(order, [&](uint32_t id) { return ranked_[id].total_ns == 0; });
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return ranked_[a].total_ns > ranked_[b].total_ns; });
  const size_t own = std::min(order.size(), max_threads);
  chosen_.assign(ranked_.size(), static_cast<uint32_t>(own));
  HistoryLanes::Thread others = {.total_ns = ranked_[0].total_ns};
  for (size_t i = 0; i < order.size(); ++i) {
    if (i < own) {
      chosen_[order[i]] = static_cast<uint32_t>(i);
      lanes_.threads.push_back(ranked_[order[i]]);
    } else {
      ++lanes_.others;
      others.total_ns += ranked_[order[i]].total_ns;
    }
  }
  if (ranked_[0].total_ns > 0) ++lanes_.others;
  if (lanes_.others > 0) lanes_.threads.push_back(std::move(others));
  values_.resize(lanes_.threads.size());
}

void LaneBuilder::Cover(uint64_t begin_unix_ns, uint64_t end_unix_ns) {
  ForEachStep(lanes_, begin_unix_ns, end_unix_ns,
              [&](size_t step, uint64_t, uint64_t) { lanes_.covered[step] = true; });
}

void LaneBuilder::Fill(uint32_t thread, LaneCategory state, uint64_t begin_unix_ns, uint64_t end_unix_ns, uint64_t ns) {
  if (thread >= chosen_.size() || chosen_[thread] >= values_.size()) return;  // came between the passes
  Values& values = values_[chosen_[thread]][static_cast<size_t>(state)];
  if (values.empty()) values.assign(lanes_.steps, 0);
  const uint64_t whole = std::max<uint64_t>(end_unix_ns - std::min(begin_unix_ns, end_unix_ns), 1);
  ForEachStep(lanes_, begin_unix_ns, end_unix_ns, [&](size_t step, uint64_t from, uint64_t to) {
    values[step] += Proportion(ns, to, whole) - Proportion(ns, from, whole);
  });
}

HistoryLanes LaneBuilder::Build() && {
  for (uint32_t thread = 0; thread < values_.size(); ++thread) {
    for (size_t state = 0; state < values_[thread].size(); ++state) {
      HistoryLanes::Lane lane = {.thread = thread, .state = static_cast<LaneCategory>(state)};
      const Values& values = values_[thread][state];
      for (uint32_t step = 0; step < values.size(); ++step) {
        if (values[step] > 0) lane.values.emplace_back(step, values[step]);
      }
      if (!lane.values.empty()) lanes_.lanes.push_back(std::move(lane));
    }
  }
  return std::move(lanes_);
}

}  // namespace clrsampler
