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
#include "pipeline/record_options.h"

namespace clrsampler {

// Opens all that --output names, before the work begins. `comm`: of the recording, what %c stands for.
absl::StatusOr<std::vector<ProfileOutput>> OpenOutputs(const RecordConfig& config, const std::vector<uint32_t>& pids,
                                                       std::string comm);
// nullopt: nobody wants the account.
absl::StatusOr<std::optional<OutputFile>> OpenStats(const RecordConfig& config);

// A file for a result. The descriptor is borrowed.
struct ResultFile {
  std::string name;
  int descriptor;
};
// One file twice would be two results in one another. `files`: all but the outputs.
absl::Status CheckDistinct(const std::vector<ProfileOutput>& outputs, std::vector<ResultFile> files);

// Says what to do with the result: with the first picture, or else with the first file.
std::string WhatNext(const std::vector<ProfileOutput>& outputs);

std::string HostName();  // empty: not known

// The origin of a recording that is made here, now.
RunOrigin OriginHere(const RecordOptions& options);
std::string CommOf(uint32_t pid);  // "process": not known

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_RECORD_RESULTS_H_
