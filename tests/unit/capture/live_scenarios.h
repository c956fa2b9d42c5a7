// The behaviour that the capture library must have on a real kernel. sampler_live_test runs it here, and
// capture_selftest in the virtual machines of tools/kernel_matrix. Each returns OK, or what was wrong.
#ifndef CLRSAMPLER_TESTS_UNIT_CAPTURE_LIVE_SCENARIOS_H_
#define CLRSAMPLER_TESTS_UNIT_CAPTURE_LIVE_SCENARIOS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace clrsampler::test_support {

// The time that a hypervisor has taken from this machine so far, in seconds of one CPU.
double StolenSeconds();

struct ScenarioSetting {
  // Samples per frequency x CPU time. Real machines keep the rate; emulated ones lose ticks (0.23 seen on a host with
  // load 16).
  double least_share = 0.85;
  double most_share = 1.15;
  double seconds = 1.5;
  int frequency = 499;
  double stolen_before = StolenSeconds();  // no sample is taken in such time, though it may count as the program's
  std::string notes;                       // figures, filled in by the scenario
};

absl::Status SamplesABurningProcess(ScenarioSetting& setting);
absl::Status WalksFromSavedRegistersInSystemCalls(ScenarioSetting& setting);
absl::Status GoesOnWhereTheFramePointerHoldsData(ScenarioSetting& setting);
absl::Status GivesAProgramWithABeatItsShare(ScenarioSetting& setting);
absl::Status DeliversKernelThreadsAndAccountsForAllHits(ScenarioSetting& setting);
absl::Status CountsWhatATinyRingLoses(ScenarioSetting& setting);
absl::Status FollowsAChildNobodyAnnounced(ScenarioSetting& setting);
absl::Status StopsAtTheFrameLimit(ScenarioSetting& setting);
absl::Status TranslatesToAPidNamespace(ScenarioSetting& setting);
absl::Status FilterHoldsBackEverybodyElse(ScenarioSetting& setting);
absl::Status WakesTheReaderByThreshold(ScenarioSetting& setting);
absl::Status LoadsWithLittleLockedMemory(ScenarioSetting& setting);
absl::Status SaysWhatAnOrdinaryUserLacks(ScenarioSetting& setting);
absl::Status NamesKernelAddressesAsKallsymsDoes(ScenarioSetting& setting);
absl::Status SideBandTellsALifeInOrder(ScenarioSetting& setting);
// async_scenarios.cc
absl::Status WhoAwaitsIsCopied(ScenarioSetting& setting);
// thread_scenarios.cc
absl::Status ThreadsAreToldWithTheirCreator(ScenarioSetting& setting);
// wait_scenarios.cc
absl::Status WaitsAreToldWithTheirWakers(ScenarioSetting& setting);
absl::Status ATableTellsWaitsWithTheirWakers(ScenarioSetting& setting);
absl::Status StacksOfWaitsWakeTheReader(ScenarioSetting& setting);
// wait_look_scenarios.cc
absl::Status ZombiesWaitForNothing(ScenarioSetting& setting);
absl::Status AThreadThatWasNeverSwitchedHasRun(ScenarioSetting& setting);
absl::Status ALookIsOfOneMoment(ScenarioSetting& setting);
// wait_queue_scenarios.cc
absl::Status AThreadThatIsWokenSoonWaitsForItsCpu(ScenarioSetting& setting);
absl::Status AThreadThatIsQueuedFromTheBeginningWantsACpu(ScenarioSetting& setting);
absl::Status ShortWaitsAreSummedUp(ScenarioSetting& setting);
// wait_namespace_scenarios.cc
absl::Status WaitsOutsideOfTheNamespaceAreNoProcess(ScenarioSetting& setting);
// wait_table_scenarios.cc
absl::Status AThreadWithAnothersNumberBeginsAnew(ScenarioSetting& setting);
absl::Status ThreadsBeyondTheTableBeginAnew(ScenarioSetting& setting);
// Switches the second CPU off and on; only for machines of our own.
absl::Status FollowsACpuThatComesBack(ScenarioSetting& setting);

struct Scenario {
  const char* name;
  absl::Status (*run)(ScenarioSetting&);
};
// All but the one that switches CPUs off.
const std::vector<Scenario>& LiveScenarios();

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_CAPTURE_LIVE_SCENARIOS_H_
