// `clrsampler wall`, `clrsampler locks` and `clrsampler threadpool`: where the threads of a .NET process wait, and for
// what.
#ifndef CLRSAMPLER_CLI_WAITS_COMMAND_H_
#define CLRSAMPLER_CLI_WAITS_COMMAND_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "cli/watch.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

struct WaitsConfig {
  WatchConfig watch;
  std::string min_wait = "1ms";
  uint32_t rows = 20;
};

void DeclareWaitsOptions(CLI::App& app, WaitsConfig& config);

// All that the threads do: waiting by kind, and running.
absl::Status RunWall(const WaitsConfig& config);
// Tells what threads wait for each other for, and which thread ended it.
absl::Status RunLocks(const WaitsConfig& config);
// Tells what the pool's workers do, and whether it is starved.
absl::Status RunThreadPool(const WaitsConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_WAITS_COMMAND_H_
