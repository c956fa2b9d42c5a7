// `clrsampler mip`: makes, merges and shows Machine IR Profiles (docs/mip.md).
#ifndef CLRSAMPLER_CLI_MIP_COMMAND_H_
#define CLRSAMPLER_CLI_MIP_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace clrsampler {

// `arguments` are those behind the word mip. A parser of its own: the word behind it is a command, too.
absl::Status RunMip(const std::vector<std::string>& arguments);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_MIP_COMMAND_H_
