// The waits of a thread, as the samples of a profile of waits tell them.
#ifndef CLRSAMPLER_OUTPUT_LANE_WAITS_H_
#define CLRSAMPLER_OUTPUT_LANE_WAITS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "formats/profile/profile_model.h"
#include "output/thread_lanes.h"
#include "profile/wait_kind.h"

namespace clrsampler {

inline constexpr uint64_t kMaxTime = std::numeric_limits<int64_t>::max();  // in nanoseconds: what trace formats can say

// Times are nanoseconds since the start of the recording, at most INT64_MAX.
struct LaneWait {
  uint32_t row = 0;  // of samples
  WaitKind kind = WaitKind::kOther;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;     // at the thread's next sample at the latest
  uint64_t waited_ns = 0;  // more than end less begin: the sample stands for other waits, too
};

// In the order of their times. Sums of many waits, which have no time, are left out; none in profiles that count
// something else than time.
std::vector<LaneWait> WaitsOfLane(const ProfileModel& model, const ThreadLanes& lanes, const ThreadLane& lane);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_LANE_WAITS_H_
