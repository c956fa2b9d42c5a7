#include "output/thread_lanes.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace clrsampler {
namespace {

uint64_t EndOf(const ProfileModel& model) {
  uint64_t end_ns = model.meta.duration_ns;
  for (const uint64_t time : model.samples.time_ns) {
    if (time != kNoTime) end_ns = std::max(end_ns, time);
  }
  return end_ns;
}

// One for each thread of the model, in the order in which viewers show them.
std::vector<ThreadLane> LanesOfThreads(const ProfileModel& model) {
  std::vector<ThreadLane> by_thread(model.threads.size());
  for (size_t i = 0; i < model.samples.size(); ++i) {
    by_thread[model.samples.thread[i]].rows.push_back(static_cast<uint32_t>(i));
  }
  for (const ModelEvent& event : model.events) by_thread[event.thread].events.push_back(&event);
  for (size_t i = 0; i < by_thread.size(); ++i) by_thread[i].thread = static_cast<ThreadIndex>(i);
  const auto key = [&](const ThreadLane& lane) {
    const ModelThread& thread = model.threads[lane.thread];
    const int rank = thread.tid == thread.pid ? 0 : thread.tid == 0 ? 1 : 2;
    return std::tuple(thread.pid, lane.rows.empty(), rank, thread.tid);
  };
  std::stable_sort(by_thread.begin(), by_thread.end(),
                   [&](const ThreadLane& a, const ThreadLane& b) { return key(a) < key(b); });
  return by_thread;
}

}  // namespace

ThreadLanes::ThreadLanes(const ProfileModel& model) : model_(model), end_ns_(EndOf(model)) {
  // The first lane by process and tid, and by process and 0.
  absl::flat_hash_map<std::pair<ModelProcess, uint32_t>, size_t> homes;
  for (ThreadLane& lane : LanesOfThreads(model)) {
    if (lane.rows.empty() && lane.events.empty()) continue;
    const ModelThread& thread = model.threads[lane.thread];
    const ModelProcess process = ProcessOf(thread);
    const auto home = homes.find({process, thread.tid});
    if (home != homes.end() && (lane.rows.empty() || thread.tid == 0)) {
      std::vector<const ModelEvent*>& events = lanes_[home->second].events;
      events.insert(events.end(), lane.events.begin(), lane.events.end());
      lane.events.clear();
      if (lane.rows.empty()) continue;
    }
    lane.leads = homes.try_emplace({process, 0}, lanes_.size()).second;
    homes.try_emplace({process, thread.tid}, lanes_.size());
    lanes_.push_back(std::move(lane));
  }
  for (ThreadLane& lane : lanes_) {
    std::stable_sort(lane.rows.begin(), lane.rows.end(), [&](uint32_t a, uint32_t b) { return TimeOf(a) < TimeOf(b); });
  }
}

uint64_t ThreadLanes::TimeOf(uint32_t row) const { return std::min(model_.samples.time_of(row), end_ns_); }

ModelProcess ProcessOf(const ModelThread& thread) { return {thread.pid, thread.pid == 0 ? thread.comm : 0}; }

}  // namespace clrsampler
