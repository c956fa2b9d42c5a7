// --hook-budget, of all commands that plant probes as a by-product.
#ifndef CLRSAMPLER_CLI_HOOK_BUDGET_OPTION_H_
#define CLRSAMPLER_CLI_HOOK_BUDGET_OPTION_H_

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

constexpr double kDefaultHookBudget = 0.3;  // percent of a CPU

void DeclareHookBudget(CLI::App& app, double& percent);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_HOOK_BUDGET_OPTION_H_
