#include "profile/wait_cycles.h"

#include <algorithm>

namespace clrsampler {

std::vector<std::vector<uint32_t>> WaitCycles(const std::map<uint32_t, uint32_t>& waits_for) {
  std::vector<std::vector<uint32_t>> cycles;
  std::map<uint32_t, uint32_t> walk_of;  // by thread: the first thread of the walk that came through it
  for (const auto& [start, ignored] : waits_for) {
    std::vector<uint32_t> way;
    uint32_t thread = start;
    for (auto next = waits_for.find(thread); next != waits_for.end() && walk_of.emplace(thread, start).second;
         next = waits_for.find(thread)) {
      way.push_back(thread);
      thread = next->second;
    }
    const auto begin = std::find(way.begin(), way.end(), thread);
    if (begin == way.end()) continue;  // it ends, or leads into an earlier walk
    std::vector<uint32_t> cycle(begin, way.end());
    std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
    cycles.push_back(std::move(cycle));
  }
  std::sort(cycles.begin(), cycles.end());
  return cycles;
}

}  // namespace clrsampler
