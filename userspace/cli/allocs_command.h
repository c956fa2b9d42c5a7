// clrsampler allocs: what a .NET process allocates, by type and by method.
#ifndef CLRSAMPLER_CLI_ALLOCS_COMMAND_H_
#define CLRSAMPLER_CLI_ALLOCS_COMMAND_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "cli/hook_budget_option.h"
#include "cli/watch.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

struct AllocsConfig {
  WatchConfig watch;
  std::string source = "probe";
  uint32_t event_buffer_megabytes = 16;
  double hook_budget = kDefaultHookBudget;
  size_t rows = 15;
};

void DeclareAllocsOptions(CLI::App& app, AllocsConfig& config);
absl::Status RunAllocs(const AllocsConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_ALLOCS_COMMAND_H_
