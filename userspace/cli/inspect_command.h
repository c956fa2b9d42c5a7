// `clrsampler jitdump FILE` and `clrsampler r2rmap FILE`: a file's contents as text, for people who debug their own
// maps.
#ifndef CLRSAMPLER_CLI_INSPECT_COMMAND_H_
#define CLRSAMPLER_CLI_INSPECT_COMMAND_H_

#include <string>

#include "absl/status/status.h"

namespace clrsampler {

absl::Status PrintJitdump(const std::string& path);
absl::Status PrintR2rMap(const std::string& path);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_INSPECT_COMMAND_H_
