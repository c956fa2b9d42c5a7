#include "pipeline/expected_samples.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "capture/sampling_period.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

class ExpectedSamplesTest : public testing::Test {
 protected:
  ExpectedSamples AtHz(uint32_t frequency_hz) {
    return ExpectedSamples(frequency_hz, [this](uint32_t pid) -> std::optional<uint64_t> {
      const auto found = cpu_ns_.find(pid);
      return found == cpu_ns_.end() ? std::nullopt : std::optional(found->second);
    });
  }
  static uint64_t Samples(uint64_t ns, uint32_t frequency_hz) { return ns / SamplingPeriodNs(frequency_hz); }

  std::map<uint32_t, uint64_t> cpu_ns_;
};

TEST_F(ExpectedSamplesTest, IsTheCpuTimeOfTheRunInPeriods) {
  cpu_ns_[7] = 15'000 * kMillisecondNs;
  ExpectedSamples expected = AtHz(99);
  expected.StartProcess(7, false);
  cpu_ns_[7] = 25'000 * kMillisecondNs;
  expected.Update();
  EXPECT_EQ(expected.samples(), Samples(10'000 * kMillisecondNs, 99));
}

TEST_F(ExpectedSamplesTest, EachTimeCountsAtItsOwnRate) {
  ExpectedSamples expected = AtHz(100);
  expected.SetHostBusyNs(10'000 * kMillisecondNs);
  expected.StartHost();
  expected.SetHostBusyNs(13'000 * kMillisecondNs);
  expected.SetFrequency(50);
  EXPECT_EQ(expected.samples(), Samples(3'000 * kMillisecondNs, 100));
  expected.SetHostBusyNs(15'000 * kMillisecondNs);
  EXPECT_EQ(expected.samples(), Samples(3'000 * kMillisecondNs, 100) + Samples(2'000 * kMillisecondNs, 50));
}

TEST_F(ExpectedSamplesTest, AProcessThatIsGoneKeepsItsLastReading) {
  cpu_ns_[7] = 0;
  ExpectedSamples expected = AtHz(100);
  expected.StartProcess(7, false);
  cpu_ns_[7] = 3'000 * kMillisecondNs;
  expected.Update();
  cpu_ns_.clear();
  expected.Update();
  EXPECT_EQ(expected.samples(), Samples(3'000 * kMillisecondNs, 100));
  cpu_ns_[7] = 100 * kMillisecondNs;
  expected.Update();
  EXPECT_EQ(expected.samples(), Samples(3'000 * kMillisecondNs, 100)) << "another one, with the same number";
}

TEST_F(ExpectedSamplesTest, WhatAnEndedProcessUsedStaysAndItsPidMayBeReused) {
  ExpectedSamples expected = AtHz(100);
  expected.StartProcess(7, true);
  cpu_ns_[7] = 1'000 * kMillisecondNs;
  expected.EndProcess(7);
  expected.EndProcess(7);
  EXPECT_EQ(expected.samples(), Samples(1'000 * kMillisecondNs, 100));
  cpu_ns_[7] = 200 * kMillisecondNs;
  expected.StartProcess(7, true);
  EXPECT_EQ(expected.samples(), Samples(1'200 * kMillisecondNs, 100));
}

TEST_F(ExpectedSamplesTest, ForACommandAllTimeSinceItsBirthCounts) {
  cpu_ns_[7] = 500 * kMillisecondNs;
  ExpectedSamples expected = AtHz(100);
  expected.StartProcess(7, true);
  EXPECT_EQ(expected.samples(), Samples(500 * kMillisecondNs, 100));
  expected.SetChildCpuNs(2'000 * kMillisecondNs);
  EXPECT_EQ(expected.samples(), Samples(2'000 * kMillisecondNs, 100))
      << "what its children used, known once it was waited for";
}

TEST_F(ExpectedSamplesTest, TheHostCountsOnlyWhereItIsAskedForAndNeverShrinks) {
  ExpectedSamples expected = AtHz(99);
  expected.SetHostBusyNs(10'000 * kMillisecondNs);
  expected.SetHostBusyNs(12'000 * kMillisecondNs);
  EXPECT_EQ(expected.samples(), 0u);
  expected.StartHost();
  expected.SetHostBusyNs(14'000 * kMillisecondNs);
  expected.SetHostBusyNs(13'000 * kMillisecondNs);
  EXPECT_EQ(expected.samples(), Samples(2'000 * kMillisecondNs, 99));
}

}  // namespace
}  // namespace clrsampler
