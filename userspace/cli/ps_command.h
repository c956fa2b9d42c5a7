// `clrsampler ps`: the .NET processes of this host.
#ifndef CLRSAMPLER_CLI_PS_COMMAND_H_
#define CLRSAMPLER_CLI_PS_COMMAND_H_

#include "absl/status/status.h"

namespace clrsampler {

absl::Status PrintProcesses(bool json);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_PS_COMMAND_H_
