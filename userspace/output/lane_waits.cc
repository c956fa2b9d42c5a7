#include "output/lane_waits.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>

#include "profile/lane_category.h"

namespace clrsampler {
namespace {

// 0: the unit is no time.
uint64_t NanosecondsOf(WeightUnit unit) {
  switch (unit) {
    case WeightUnit::kNanoseconds:
      return 1;
    case WeightUnit::kMicroseconds:
      return 1000;
    case WeightUnit::kSamples:
    case WeightUnit::kBytes:
      break;
  }
  return 0;
}

// nullopt: the thread did not wait, or the sample is a sum of many waits.
std::optional<WaitKind> KindOf(const ProfileModel& model, uint32_t row) {
  if (model.samples.time_of(row) == kNoTime) return std::nullopt;
  for (NodeIndex node = model.samples.stack[row]; node != kRootNode; node = model.nodes[node].parent) {
    const ModelFrame& frame = model.frame_of(node);
    if (const auto wait = WaitKindOfMark(frame.kind, model.text(frame.name))) return wait;
  }
  return std::nullopt;
}

}  // namespace

std::vector<LaneWait> WaitsOfLane(const ProfileModel& model, const ThreadLanes& lanes, const ThreadLane& lane) {
  std::vector<LaneWait> waits;
  const uint64_t factor = NanosecondsOf(model.meta.unit);
  if (factor == 0) return waits;
  for (size_t i = 0; i < lane.rows.size(); ++i) {
    const uint32_t row = lane.rows[i];
    const std::optional<WaitKind> kind = KindOf(model, row);
    if (!kind) continue;
    const uint64_t weight = model.samples.weight_of(row);
    LaneWait wait{row, *kind, std::min(lanes.TimeOf(row), kMaxTime)};
    wait.waited_ns = weight > kMaxTime / factor ? kMaxTime : weight * factor;
    wait.end_ns = wait.begin_ns + std::min(wait.waited_ns, kMaxTime - wait.begin_ns);
    if (i + 1 < lane.rows.size()) wait.end_ns = std::min(wait.end_ns, lanes.TimeOf(lane.rows[i + 1]));
    waits.push_back(wait);
  }
  return waits;
}

}  // namespace clrsampler
