// Turns what a recording has gathered into a profile that can be written.
#ifndef CLRSAMPLER_CLI_RECORDED_MODEL_H_
#define CLRSAMPLER_CLI_RECORDED_MODEL_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"
#include "output/pool_summary.h"
#include "pipeline/record_options.h"
#include "pipeline/recorder.h"

namespace clrsampler {

// Whether a recording reads the numbers of a thread pool: of wall time with samples, of one process that runs here. A
// saved stream has no such reading, so that its replay says the same as the recording.
bool ReadsPool(const RecordOptions& options);

// After Recorder::Run: StatsJson, with what a recording of wall time says of the thread pool. `numbers`: of
// PoolReadings.
std::string AccountJson(const Recorder& recorder, const RecordOptions& options,
                        const std::optional<PoolNumbers>& numbers);

// After Recorder::Run, with the options that the recorder was made with. `account_json`: of AccountJson.
absl::StatusOr<ProfileModel> RecordedModel(const Recorder& recorder, const RecordOptions& options,
                                           std::string account_json);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_RECORDED_MODEL_H_
