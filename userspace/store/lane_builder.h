// Times of threads put on a line of equal steps. Pure.
//
// There are two passes over the same times. The first finds the threads with most time, and the second fills only their
// lanes. So a host with thousands of threads takes no more memory than its busiest few.
#ifndef CLRSAMPLER_STORE_LANE_BUILDER_H_
#define CLRSAMPLER_STORE_LANE_BUILDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profile/lane_category.h"
#include "store/history_types.h"

namespace clrsampler {

class LaneBuilder {
 public:
  // `steps` of `step_ns` from `begin_unix_ns` on.
  LaneBuilder(uint64_t begin_unix_ns, uint64_t step_ns, size_t steps);

  // The number of a thread; `thread.total_ns` has no meaning. `started_boot_ns`: of its process, 0 where it is not
  // known.
  uint32_t Thread(const HistoryLanes::Thread& thread, uint64_t started_boot_ns);
  // First pass.
  void Rank(uint32_t thread, uint64_t ns) { ranked_[thread].total_ns += ns; }
  // Between the passes.
  void Choose(size_t max_threads);
  // Second pass. A time that lies in two steps is in each by its part.
  void Cover(uint64_t begin_unix_ns, uint64_t end_unix_ns);
  void Fill(uint32_t thread, LaneCategory state, uint64_t begin_unix_ns, uint64_t end_unix_ns, uint64_t ns);
  HistoryLanes Build() &&;

 private:
  using Values = std::vector<uint64_t>;  // by step; empty: there are none

  HistoryLanes lanes_;
  std::vector<HistoryLanes::Thread> ranked_;  // the first one is of those that have no room
  absl::flat_hash_map<std::string, uint32_t> ids_;
  std::vector<uint32_t> chosen_;  // of each ranked one its index of lanes_.threads
  std::vector<std::array<Values, kLaneCategoryCount>> values_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_LANE_BUILDER_H_
