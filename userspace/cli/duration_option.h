// Times on the command line.
#ifndef CLRSAMPLER_CLI_DURATION_OPTION_H_
#define CLRSAMPLER_CLI_DURATION_OPTION_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace clrsampler {

// The value of --duration: "30s", "500ms", "2m", "1h30m"; a bare number means seconds. Nanoseconds, from 1 to those of a
// year. Errors are sentences with a hint.
absl::StatusOr<uint64_t> ParseDurationNs(const std::string& text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_DURATION_OPTION_H_
