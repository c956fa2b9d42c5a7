// Process ids on the command line.
#ifndef CLRSAMPLER_CLI_PIDS_OPTION_H_
#define CLRSAMPLER_CLI_PIDS_OPTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace clrsampler {

// The values of --pid, each one or several with commas between them.
absl::StatusOr<std::vector<uint32_t>> ParsePids(const std::vector<std::string>& values);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_PIDS_OPTION_H_
