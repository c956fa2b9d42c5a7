#include "formats/pdb/line_at.h"

#include <algorithm>

namespace clrsampler {

std::optional<SequencePoint> LineAt(std::span<const SequencePoint> points, uint32_t il_offset) {
  auto point =
      std::upper_bound(points.begin(), points.end(), il_offset,
                       [](uint32_t offset, const SequencePoint& candidate) { return offset < candidate.il_offset; });
  while (point != points.begin()) {
    --point;
    if (!point->hidden()) return *point;
  }
  return std::nullopt;
}

}  // namespace clrsampler
