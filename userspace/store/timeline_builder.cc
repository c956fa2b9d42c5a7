#include "store/timeline_builder.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "store/proportion.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxGroups = 200'000;  // further ones are among the others
constexpr absl::string_view kOthers = "[others]";

// The rest of a division goes to the last part.
WaitTimes PartOf(WaitTimes times, uint64_t from_ns, uint64_t part_ns, uint64_t whole_ns) {
  VisitWaitStates(times, [&](absl::string_view, uint64_t& ns) {
    ns = Proportion(ns, from_ns + part_ns, whole_ns) - Proportion(ns, from_ns, whole_ns);
  });
  return times;
}

}  // namespace

TimelineBuilder::TimelineBuilder(uint64_t begin_unix_ns, uint64_t step_ns, size_t steps, TimelineBy by) : by_(by) {
  line_.begin_unix_ns = begin_unix_ns;
  line_.step_ns = step_ns;
  line_.steps = steps;
  covered_ns_.assign(steps, 0);
  groups_.emplace_back().series.label = std::string(kOthers);
}

void TimelineBuilder::BeginSegment(const SegmentDictionary& segment) {
  group_of_.assign(segment.sizes().processes, kNotYet);
}

uint32_t TimelineBuilder::GroupOf(const SegmentDictionary& segment, uint32_t number) {
  uint32_t& group = group_of_[number];
  if (group != kNotYet) return group;
  const SegmentProcess& process = segment.process(number);
  const std::string container(segment.text(process.container));
  const std::string comm(segment.text(process.comm));
  std::string key =
      by_ == TimelineBy::kContainer ? container : absl::StrCat(process.pid, " ", process.started_boot_ns, " ", comm);
  const bool room = groups_.size() < kMaxGroups;
  const auto found =
      room ? group_ids_.try_emplace(std::move(key), static_cast<uint32_t>(groups_.size())).first : group_ids_.find(key);
  if (found == group_ids_.end()) return group = 0;
  group = found->second;
  if (group == groups_.size()) groups_.emplace_back();
  TimelineSeries& series = groups_[group].series;
  series.label = by_ == TimelineBy::kContainer ? container : comm;
  series.pid = by_ == TimelineBy::kContainer ? 0 : process.pid;
  if (!container.empty()) series.container = container;
  series.dotnet |= process.runtime != 0;
  return group;
}

void TimelineBuilder::Rank(const SegmentDictionary& segment, std::span<const ProcessTally> tallies) {
  for (const ProcessTally& tally : tallies) {
    const uint32_t id = GroupOf(segment, tally.process);  // may move the groups
    groups_[id].cpu_ns += tally.total_cpu_ns();
    groups_[id].other_ns += tally.pause_ns + tally.compile_ns + WaitedForThreadsNs(tally.waits);
  }
}

void TimelineBuilder::Choose(size_t max_series) {
  std::vector<uint32_t> order(groups_.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](uint32_t id) { return id == 0 || groups_[id].cpu_ns + groups_[id].other_ns == 0; });
  const auto key = [&](uint32_t id) {
    const Group& group = groups_[id];
    return std::tuple(~group.cpu_ns, ~group.other_ns, group.series.pid, absl::string_view(group.series.label));
  };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  const bool others = order.size() > max_series || groups_[0].cpu_ns + groups_[0].other_ns > 0;
  const size_t named = others ? std::min(order.size(), max_series - std::min<size_t>(1, max_series)) : order.size();
  for (size_t i = 0; i < order.size(); ++i) {
    if (i < named) line_.series.push_back(groups_[order[i]].series);
    groups_[order[i]].chosen = static_cast<uint32_t>(std::min(i, named));
  }
  groups_[0].chosen = static_cast<uint32_t>(named);
  if (others) line_.series.push_back(groups_[0].series);
  for (TimelineSeries& series : line_.series) {
    series.cores.assign(line_.steps, 0);
    series.pause_ns.assign(line_.steps, 0);
    series.suspend_ns.assign(line_.steps, 0);
    series.compile_ns.assign(line_.steps, 0);
    series.allocated_bytes.assign(line_.steps, 0);
    series.wait_ns.assign(line_.steps, 0);
  }
}

void TimelineBuilder::Fill(const SegmentDictionary& segment, uint64_t begin_unix_ns, uint64_t end_unix_ns,
                           std::span<const ProcessTally> tallies) {
  if (begin_unix_ns < line_.begin_unix_ns) return;
  const uint64_t whole_ns = end_unix_ns - std::min(begin_unix_ns, end_unix_ns);
  const uint64_t begin = begin_unix_ns - line_.begin_unix_ns;
  for (uint64_t step = begin / line_.step_ns; step < line_.steps; ++step) {
    const uint64_t step_begin = step * line_.step_ns;
    if (step_begin > begin && step_begin >= begin + whole_ns) break;
    const uint64_t from = std::max(step_begin, begin);
    const uint64_t part_ns = std::min(step_begin + line_.step_ns, begin + whole_ns) - from;
    covered_ns_[step] += part_ns;
    for (const ProcessTally& tally : tallies) {
      AddStates(step, tally, from - begin, part_ns, whole_ns);
      const uint32_t chosen = groups_[GroupOf(segment, tally.process)].chosen;
      if (chosen >= line_.series.size()) continue;
      TimelineSeries& series = line_.series[chosen];
      series.cores[step] += static_cast<double>(Proportion(tally.total_cpu_ns(), part_ns, whole_ns));
      // The rest of a division goes to the last part.
      const auto add = [&](std::vector<uint64_t>& values, uint64_t value) {
        values[step] += Proportion(value, from - begin + part_ns, whole_ns) - Proportion(value, from - begin, whole_ns);
      };
      if (whole_ns == 0) {
        series.pause_ns[step] += tally.pause_ns;
        series.suspend_ns[step] += tally.suspend_ns;
        series.compile_ns[step] += tally.compile_ns;
        series.allocated_bytes[step] += tally.allocated_bytes;
        series.wait_ns[step] += tally.waits.waited_ns();
      } else {
        add(series.pause_ns, tally.pause_ns);
        add(series.suspend_ns, tally.suspend_ns);
        add(series.compile_ns, tally.compile_ns);
        add(series.allocated_bytes, tally.allocated_bytes);
        add(series.wait_ns, tally.waits.waited_ns());
      }
    }
  }
}

void TimelineBuilder::AddStates(size_t step, const ProcessTally& tally, uint64_t from_ns, uint64_t part_ns,
                                uint64_t whole_ns) {
  if (tally.waits == WaitTimes()) return;
  line_.states.resize(line_.steps);
  AddTimes(line_.states[step], whole_ns == 0 ? tally.waits : PartOf(tally.waits, from_ns, part_ns, whole_ns));
}

Timeline TimelineBuilder::Build() && {
  line_.covered_ns = covered_ns_;
  for (TimelineSeries& series : line_.series) {
    for (size_t i = 0; i < line_.steps; ++i) {
      series.cores[i] /= static_cast<double>(std::max(covered_ns_[i], uint64_t{1}));
    }
  }
  return std::move(line_);
}

}  // namespace clrsampler
