// `clrsampler top`: what the host, or some processes, are doing now; in the terminal, or once as text.
#ifndef CLRSAMPLER_CLI_TOP_COMMAND_H_
#define CLRSAMPLER_CLI_TOP_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/hook_budget_option.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

struct TopConfig {
  std::vector<std::string> pids;
  uint32_t frequency_hz = 99;
  std::string interval = "2s";
  std::string sort = "cpu";
  std::string filter;  // expression; empty: none
  uint32_t lines = 20;
  bool methods = false;
  bool addresses = false;
  bool once = false;
  double hook_budget = kDefaultHookBudget;  // percent of a CPU
};

void DeclareTopOptions(CLI::App& app, TopConfig& config);
absl::Status RunTop(const TopConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_TOP_COMMAND_H_
