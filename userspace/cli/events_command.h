// clrsampler events: what the runtime of a .NET process tells of itself, one event a line.
#ifndef CLRSAMPLER_CLI_EVENTS_COMMAND_H_
#define CLRSAMPLER_CLI_EVENTS_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

struct EventsConfig {
  uint32_t pid = 0;
  std::optional<std::string> duration;
  std::string format = "text";
  std::vector<std::string> kinds;  // empty: all
  std::string source = "eventpipe";
  uint32_t buffer_megabytes = 16;
  bool with_library = false;
  std::string library_socket;  // instead of a process; empty: none
};

void DeclareEventsOptions(CLI::App& app, EventsConfig& config);
absl::Status RunEvents(const EventsConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_EVENTS_COMMAND_H_
