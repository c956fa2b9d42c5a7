// clrsampler pauses: each time a .NET process stands still, why, for how long, and who delayed it.
#ifndef CLRSAMPLER_CLI_PAUSES_COMMAND_H_
#define CLRSAMPLER_CLI_PAUSES_COMMAND_H_

#include <cstdint>

#include "absl/status/status.h"
#include "cli/watch.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

struct PausesConfig {
  WatchConfig watch;
  uint32_t frequency_hz = 999;
};

void DeclarePausesOptions(CLI::App& app, PausesConfig& config);
absl::Status RunPauses(const PausesConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_PAUSES_COMMAND_H_
