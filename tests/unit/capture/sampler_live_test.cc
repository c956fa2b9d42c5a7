// The scenarios of live_scenarios.h on this machine.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "live.h"
#include "status/status.h"
#include "unit/capture/live_scenarios.h"

namespace clrsampler {
namespace {

class CaptureLiveTest : public test_support::LiveTest, public ::testing::WithParamInterface<test_support::Scenario> {};

TEST_P(CaptureLiveTest, Holds) {
  test_support::ScenarioSetting setting;
  const absl::Status status = GetParam().run(setting);
  EXPECT_TRUE(status.ok()) << status.message() << "\n" << setting.notes << "\nhint: " << HintOf(status);
  std::cout << "   " << setting.notes << "\n";
}

INSTANTIATE_TEST_SUITE_P(Scenarios, CaptureLiveTest, ::testing::ValuesIn(test_support::LiveScenarios()),
                         [](const ::testing::TestParamInfo<test_support::Scenario>& one) {
                           return std::string(one.param.name);
                         });

}  // namespace
}  // namespace clrsampler
