// A share of samples, with what chance may have added to it or taken from it. Pure.
#ifndef CLRSAMPLER_OUTPUT_SHARE_H_
#define CLRSAMPLER_OUTPUT_SHARE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "formats/profile/profile_model.h"

namespace clrsampler {

struct Share {
  double value = 0;             // from 0 to 1
  std::optional<double> error;  // its standard error; nullopt: not known, or the weights are no samples
};

// The share of `samples` independent samples. One sample with it and one without it are added, so that the error of
// nothing and of all is not 0. Samples that follow each other are alike, so the true error may be larger.
Share ShareOf(uint64_t part, uint64_t whole, std::optional<double> samples);

// How many samples of equal weight would tell as much as the rows for which `wanted` has a 1; empty: as all rows. Rows
// without times are sums: of samples each counts as many as it says. nullopt: they are sums of something else.
std::optional<double> EffectiveSamples(const ProfileModel& model, std::span<const uint8_t> wanted = {});

// "31 % ± 2", "3.1 % ± 0.4"; without an error "31.2 %".
std::string ShareText(const Share& share);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_SHARE_H_
