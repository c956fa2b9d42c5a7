#include "output/nested_slices.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace clrsampler {
namespace {

class SliceTrack {
 public:
  explicit SliceTrack(std::span<const TimeSlice> slices) : slices_(slices) {}

  // False: it crosses one that has not ended.
  bool Take(size_t slice) {
    const auto [begin_ns, end_ns] = slices_[slice];
    End(begin_ns);
    if (begin_ns >= end_ns) {
      TakeInstant(slice);
      return true;
    }
    if (!open_.empty() && slices_[open_.back()].end_ns < end_ns) return false;
    steps_.push_back({SliceStep::Kind::kBegin, slice, begin_ns});
    open_.push_back(slice);
    return true;
  }

  void TakeInstant(size_t slice) { steps_.push_back({SliceStep::Kind::kInstant, slice, slices_[slice].begin_ns}); }

  // Those that have ended by then.
  void End(uint64_t time_ns) {
    for (; !open_.empty() && slices_[open_.back()].end_ns <= time_ns; open_.pop_back()) {
      steps_.push_back({SliceStep::Kind::kEnd, open_.back(), slices_[open_.back()].end_ns});
    }
  }

  std::vector<SliceStep> Steps() && {
    End(UINT64_MAX);
    return std::move(steps_);
  }

 private:
  std::span<const TimeSlice> slices_;
  std::vector<size_t> open_;  // the innermost last
  std::vector<SliceStep> steps_;
};

}  // namespace

std::vector<std::vector<SliceStep>> NestSlices(std::span<const TimeSlice> slices) {
  std::vector<size_t> order(slices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(slices[a].begin_ns, slices[b].end_ns) < std::tuple(slices[b].begin_ns, slices[a].end_ns);
  });
  std::vector<SliceTrack> tracks;
  for (const size_t slice : order) {
    if (std::any_of(tracks.begin(), tracks.end(), [&](SliceTrack& track) { return track.Take(slice); })) continue;
    if (tracks.size() == kMaxSliceTracks) {
      tracks.front().TakeInstant(slice);
    } else {
      tracks.emplace_back(slices).Take(slice);
    }
  }
  std::vector<std::vector<SliceStep>> steps;
  steps.reserve(tracks.size());
  for (SliceTrack& track : tracks) steps.push_back(std::move(track).Steps());
  return steps;
}

}  // namespace clrsampler
