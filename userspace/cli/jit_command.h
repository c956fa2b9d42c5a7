// clrsampler jit: each method that a .NET process compiles, how long that took, and for whom.
#ifndef CLRSAMPLER_CLI_JIT_COMMAND_H_
#define CLRSAMPLER_CLI_JIT_COMMAND_H_

#include "absl/status/status.h"
#include "cli/watch.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

void DeclareJitOptions(CLI::App& app, WatchConfig& config);
absl::Status RunJit(const WatchConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_JIT_COMMAND_H_
