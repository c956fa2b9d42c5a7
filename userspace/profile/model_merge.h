// Several profiles -> one, as if they had been recorded together.
#ifndef CLRSAMPLER_PROFILE_MODEL_MERGE_H_
#define CLRSAMPLER_PROFILE_MODEL_MERGE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

// Their views must be the same. Weights stay samples where these stand for the same CPU time in each (a profile that
// does not say, such as folded text, is taken to be like the others); else all become nanoseconds. Times count from the
// earliest start; samples of profiles that do not say when they started lose theirs. The time between two recordings is
// a part of the duration, but was not recorded. The accounts of the runs are left out: they do not add up.
absl::StatusOr<ProfileModel> MergeProfiles(const std::vector<ProfileModel>& profiles);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_MODEL_MERGE_H_
