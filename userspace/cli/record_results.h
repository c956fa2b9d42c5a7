// Where the results of a recording go, whichever source it is of.
#ifndef CLRSAMPLER_CLI_RECORD_RESULTS_H_
#define CLRSAMPLER_CLI_RECORD_RESULTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/output_file.h"
#include "cli/profile_options.h"
#include "cli/record_command.h"

namespace clrsampler {

// Opens all that --output names, before the work begins. `pids` and `command`: of the recording.
absl::StatusOr<std::vector<ProfileOutput>> OpenOutputs(const RecordConfig& config, const std::vector<uint32_t>& pids,
                                                       const std::vector<std::string>& command);
// nullopt: nobody wants the account.
absl::StatusOr<std::optional<OutputFile>> OpenStats(const RecordConfig& config);

// One file twice would be two results in one another.
absl::Status CheckDistinct(const std::vector<ProfileOutput>& outputs, const std::optional<OutputFile>& stats);

// Says what to do with the result: with the first picture, or else with the first file.
std::string WhatNext(const std::vector<ProfileOutput>& outputs);

std::string HostName();  // empty: not known

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_RECORD_RESULTS_H_
