// Weights of the stacks of a part of a profile. Pure.
#ifndef CLRSAMPLER_OUTPUT_WANTED_WEIGHTS_H_
#define CLRSAMPLER_OUTPUT_WANTED_WEIGHTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "formats/profile/profile_model.h"

namespace clrsampler {

// For each node the weight of the samples whose leaf it is; of the rows for which `wanted` has a 1; empty: of all.
std::vector<uint64_t> WantedWeights(const ProfileModel& model, std::span<const uint8_t> wanted);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_WANTED_WEIGHTS_H_
