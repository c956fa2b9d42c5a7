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
    return std::tuple(thread.pid, lane.rows.empty(), !IsMainThread(thread), thread.tid);
  };
  std::stable_sort(by_thread.begin(), by_thread.end(),
                   [&](const ThreadLane& a, const ThreadLane& b) { return key(a) < key(b); });
  return by_thread;
}

}  // namespace

ThreadLanes::ThreadLanes(const ProfileModel& model) : model_(model), end_ns_(EndOf(model)) {
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, size_t> homes;  // the first lane by pid and tid, and by pid and 0
  for (ThreadLane& lane : LanesOfThreads(model)) {
    if (lane.rows.empty() && lane.events.empty()) continue;
    const ModelThread& thread = model.threads[lane.thread];
    const auto home = homes.find({thread.pid, thread.tid});
    if (lane.rows.empty() && home != homes.end()) {
      std::vector<const ModelEvent*>& events = lanes_[home->second].events;
      events.insert(events.end(), lane.events.begin(), lane.events.end());
      continue;
    }
    homes.try_emplace({thread.pid, thread.tid}, lanes_.size());
    homes.try_emplace({thread.pid, 0}, lanes_.size());
    lanes_.push_back(std::move(lane));
  }
  for (ThreadLane& lane : lanes_) {
    std::stable_sort(lane.rows.begin(), lane.rows.end(), [&](uint32_t a, uint32_t b) { return TimeOf(a) < TimeOf(b); });
  }
}

uint64_t ThreadLanes::TimeOf(uint32_t row) const { return std::min(model_.samples.time_of(row), end_ns_); }

bool IsMainThread(const ModelThread& thread) { return thread.tid == 0 || thread.tid == thread.pid; }

}  // namespace clrsampler
