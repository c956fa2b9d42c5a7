// The scenarios of live_scenarios.h as one static program for the virtual machines of tools/kernel_matrix.
// usage: capture_selftest [--emulated] [--hotplug] [NAME]     exit status: the number of scenarios that failed
#include <cstdio>
#include <cstring>
#include <string>

#include "capture/feature_report.h"
#include "status/status.h"
#include "unit/capture/live_scenarios.h"

int main(int argc, char** argv) {
  using namespace clrsampler;
  test_support::ScenarioSetting defaults;
  bool hotplug = false;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--emulated") == 0) {
      defaults.least_share = 0.1;
      defaults.most_share = 1.3;
      defaults.seconds = 3;
      defaults.frequency = 99;
    } else if (std::strcmp(argv[i], "--hotplug") == 0) {
      hotplug = true;
    } else {
      only = argv[i];
    }
  }
  std::vector<test_support::Scenario> scenarios = test_support::LiveScenarios();
  if (hotplug) scenarios.push_back({"FollowsACpuThatComesBack", test_support::FollowsACpuThatComesBack});
  for (const Feature& feature : ProbeFeatures(ProbeDepth::kEverything).features) {
    std::printf("  %-3s %s: %s\n", feature.present ? "yes" : "no", feature.name.c_str(), feature.detail.c_str());
  }
  int failed = 0;
  bool any = false;
  for (const test_support::Scenario& scenario : scenarios) {
    if (!only.empty() && only != scenario.name) continue;
    any = true;
    std::fflush(stdout);
    test_support::ScenarioSetting setting = defaults;
    const absl::Status status = scenario.run(setting);
    if (status.ok()) {
      std::printf("ok     %s:%s\n", scenario.name, setting.notes.c_str());
    } else {
      ++failed;
      std::printf("FAILED %s: %s\n       %s\n       hint: %s\n", scenario.name, std::string(status.message()).c_str(),
                  setting.notes.c_str(), HintOf(status).c_str());
    }
  }
  if (!any) {
    std::printf("FAILED %s: no such scenario\n", only.c_str());
    return 1;
  }
  return failed;
}
