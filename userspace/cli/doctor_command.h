// `clrsampler doctor`: whether profiling will work here, line by line.
#ifndef CLRSAMPLER_CLI_DOCTOR_COMMAND_H_
#define CLRSAMPLER_CLI_DOCTOR_COMMAND_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"

namespace clrsampler {

// Prints the report; says whether profiling will work: no line about the host failed, nor, where a process is given,
// one about it. Without a process all .NET processes are listed, and what fails there is theirs alone.
absl::StatusOr<bool> PrintDoctor(std::optional<uint32_t> pid, bool json);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_DOCTOR_COMMAND_H_
