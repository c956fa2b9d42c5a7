// clrsampler exceptions: what a .NET process throws, by type, by method and by stack.
#ifndef CLRSAMPLER_CLI_EXCEPTIONS_COMMAND_H_
#define CLRSAMPLER_CLI_EXCEPTIONS_COMMAND_H_

#include <cstddef>

#include "absl/status/status.h"
#include "cli/hook_budget_option.h"
#include "cli/watch.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

struct ExceptionsConfig {
  WatchConfig watch;
  double hook_budget = kDefaultHookBudget;
  size_t rows = 15;
  size_t frames = 5;
};

void DeclareExceptionsOptions(CLI::App& app, ExceptionsConfig& config);
absl::Status RunExceptions(const ExceptionsConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_EXCEPTIONS_COMMAND_H_
