// clrsampler jit: each method that a .NET process compiles, how long that took, and for whom.
#ifndef CLRSAMPLER_CLI_JIT_COMMAND_H_
#define CLRSAMPLER_CLI_JIT_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

struct JitConfig {
  uint32_t pid = 0;
  std::optional<std::string> duration;
  std::string names = "short";
  bool json = false;
};

void DeclareJitOptions(CLI::App& app, JitConfig& config);
absl::Status RunJit(const JitConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_JIT_COMMAND_H_
