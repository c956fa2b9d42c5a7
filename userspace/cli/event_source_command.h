// `record --source eventpipe`: a profile of what a runtime's own event stream tells, as the target's user, without BPF.
#ifndef CLRSAMPLER_CLI_EVENT_SOURCE_COMMAND_H_
#define CLRSAMPLER_CLI_EVENT_SOURCE_COMMAND_H_

#include "absl/status/status.h"
#include "cli/record_command.h"

namespace clrsampler {

// Whether --event and --source go together, and with what else is asked for.
absl::Status CheckEventSource(const RecordConfig& config);

// Runs the command that CheckEventSource has agreed to. Errors have a hint.
absl::Status RunEventSource(const RecordConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_EVENT_SOURCE_COMMAND_H_
