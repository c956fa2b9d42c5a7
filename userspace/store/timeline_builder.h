// Tallies of entries put on a line of equal steps. Pure.
//
// Two passes over the same entries. The first finds the processes that have most time, and the second fills only their
// series. So a host with a thousand short processes a minute takes no more memory than its busiest few.
#ifndef CLRSAMPLER_STORE_TIMELINE_BUILDER_H_
#define CLRSAMPLER_STORE_TIMELINE_BUILDER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "store/entry.h"
#include "store/history.h"
#include "store/segment_dictionary.h"

namespace clrsampler {

class TimelineBuilder {
 public:
  // `steps` of `step_ns` from `begin_unix_ns` on.
  TimelineBuilder(uint64_t begin_unix_ns, uint64_t step_ns, size_t steps, TimelineBy by);

  // All that follows is of this segment.
  void BeginSegment(const SegmentDictionary& segment);
  // First pass.
  void Rank(const SegmentDictionary& segment, std::span<const ProcessTally> tallies);
  // Between the passes: at most `max_series`, the last one of which is "[others]" if there are more.
  void Choose(size_t max_series);
  // Second pass. An entry that lies in two steps is in each by its part of the time.
  void Fill(const SegmentDictionary& segment, uint64_t begin_unix_ns, uint64_t end_unix_ns,
            std::span<const ProcessTally> tallies);
  Timeline Build() &&;

 private:
  static constexpr uint32_t kNotYet = ~uint32_t{0};
  struct Group {
    TimelineSeries series;  // without values
    uint64_t cpu_ns = 0, other_ns = 0;
    uint32_t chosen = kNotYet;  // index of its series
  };
  void AddStates(size_t step, const ProcessTally& tally, uint64_t from_ns, uint64_t part_ns, uint64_t whole_ns);
  uint32_t GroupOf(const SegmentDictionary& segment, uint32_t process);

  TimelineBy by_;
  Timeline line_;
  std::vector<uint64_t> covered_ns_;  // of each step
  std::vector<Group> groups_;
  absl::flat_hash_map<std::string, uint32_t> group_ids_;
  std::vector<uint32_t> group_of_;  // of each of the segment's processes
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_TIMELINE_BUILDER_H_
