#include "cli/hook_budget_option.h"

#include <CLI/CLI.hpp>

namespace clrsampler {

void DeclareHookBudget(CLI::App& app, double& percent) {
  app.add_option("--hook-budget", percent,
                 "percent of one CPU that probes in .NET runtimes may cost a process, half of it those for pauses and "
                 "half those\n"
                 "for compilations; above that they rest for a part of the time.\n"
                 "0: no limit")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str()
      ->type_name("PERCENT");
}

}  // namespace clrsampler
