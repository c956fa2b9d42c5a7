// What a recording has gathered -> a profile that can be written.
#ifndef CLRSAMPLER_CLI_RECORDED_MODEL_H_
#define CLRSAMPLER_CLI_RECORDED_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"
#include "pipeline/record_options.h"
#include "pipeline/recorder.h"

namespace clrsampler {

// Both after Recorder::Run, with the options that the recorder was made with.

std::string AccountJson(const Recorder& recorder, const RecordOptions& options);
// `account_json`: of AccountJson.
absl::StatusOr<ProfileModel> RecordedModel(const Recorder& recorder, const RecordOptions& options,
                                           std::string account_json);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_RECORDED_MODEL_H_
