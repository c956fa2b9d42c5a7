// `events --source probe`: what one process does, seen from outside, one event a line.
#ifndef CLRSAMPLER_CLI_EVENT_PROBE_COMMAND_H_
#define CLRSAMPLER_CLI_EVENT_PROBE_COMMAND_H_

#include "absl/status/status.h"
#include "cli/events_command.h"

namespace clrsampler {

// Errors have a hint.
absl::Status RunEventProbe(const EventsConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_EVENT_PROBE_COMMAND_H_
