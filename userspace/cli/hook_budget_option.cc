#include "cli/hook_budget_option.h"

namespace clrsampler {

void DeclareHookBudget(CLI::App& app, double& percent) {
  app.add_option(
         "--hook-budget", percent,
         "percent of one CPU that such probes may cost a process; above that they rest for a part of the time.\n"
         "0: no limit")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str()
      ->type_name("PERCENT");
}

}  // namespace clrsampler
