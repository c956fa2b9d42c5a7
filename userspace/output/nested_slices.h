// Spans of time as begins and ends on tracks where each one lies wholly inside the one around it.
#ifndef CLRSAMPLER_OUTPUT_NESTED_SLICES_H_
#define CLRSAMPLER_OUTPUT_NESTED_SLICES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace clrsampler {

struct TimeSlice {
  uint64_t begin_ns = 0, end_ns = 0;  // equal: it has no duration
};

struct SliceStep {
  enum class Kind : uint8_t { kBegin, kEnd, kInstant };
  Kind kind = Kind::kInstant;
  size_t slice = 0;  // an index
  uint64_t time_ns = 0;

  friend bool operator==(const SliceStep&, const SliceStep&) = default;
};

inline constexpr size_t kMaxSliceTracks = 16;

// Steps of each track, in the order of their times. A slice that crosses another one is on a further track. Where it
// crosses one on each of kMaxSliceTracks, an instant stands for it.
std::vector<std::vector<SliceStep>> NestSlices(std::span<const TimeSlice> slices);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_NESTED_SLICES_H_
