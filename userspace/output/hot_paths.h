// The paths of a profile's call tree that most weight goes through. Pure.
#ifndef CLRSAMPLER_OUTPUT_HOT_PATHS_H_
#define CLRSAMPLER_OUTPUT_HOT_PATHS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/profile/profile_model.h"

namespace clrsampler {

struct HotPath {
  std::vector<std::string> frames;  // outermost first
  uint64_t weight = 0;              // of samples whose stack begins so
};

// From the root on a path divides where several callees have a tenth of the whole each, and else follows the one with
// the most weight as long as that has half of its caller's. Most weight first. Frames of one name below one caller are
// one, and marks are none. Paths of the samples for whose row `wanted` has a 1; empty: of all.
std::vector<HotPath> HotPaths(const ProfileModel& model, std::span<const uint8_t> wanted = {});

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_HOT_PATHS_H_
