#include "pipeline/expected_samples.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "capture/sampling_period.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

class ExpectedSamplesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "expected_samples_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    proc_ = pattern;
    ASSERT_EQ(sysconf(_SC_CLK_TCK), 100);
  }
  void TearDown() override { fs::remove_all(proc_); }
  void SetProcess(int pid, int user_ticks, int system_ticks) {
    fs::create_directories(proc_ / std::to_string(pid));
    std::ofstream(proc_ / std::to_string(pid) / "stat") << pid << " (x) S 1 1 1 0 -1 0 0 0 0 0 " << user_ticks << " "
                                                        << system_ticks << " 0 0 20 0 1 0 100 0 0 0 0 0 0 0 0\n";
  }
  void SetHost(int user, int idle, int steal = 0) {
    std::ofstream(proc_ / "stat") << "cpu  " << user << " 0 0 " << idle << " 0 0 0 " << steal << " 0 0\n";
  }
  static uint64_t Samples(uint64_t ticks, uint32_t frequency_hz) {
    return ticks * 10'000'000 / SamplingPeriodNs(frequency_hz);
  }
  fs::path proc_;
};

TEST_F(ExpectedSamplesTest, IsTheCpuTimeOfTheRunInPeriods) {
  SetProcess(7, 1000, 500);
  ExpectedSamples expected(proc_.string(), 99);
  expected.StartProcess(7, false);
  SetProcess(7, 1800, 700);  // 10 s more
  expected.Update();
  EXPECT_EQ(expected.samples(), Samples(1000, 99));
}

TEST_F(ExpectedSamplesTest, TimeThatAHypervisorTookIsTold) {
  SetHost(1000, 0, 70);
  ExpectedSamples expected(proc_.string(), 99);
  expected.StartHost();
  EXPECT_EQ(expected.stolen_ns(), 0u);
  SetHost(1300, 500, 95);
  expected.Update();
  EXPECT_EQ(expected.stolen_ns(), 250'000'000u);
  EXPECT_EQ(expected.samples(), Samples(300, 99));
  fs::remove(proc_ / "stat");
  EXPECT_EQ(expected.stolen_ns(), 0u);
}

TEST_F(ExpectedSamplesTest, EachTimeCountsAtItsOwnRate) {
  SetHost(1000, 0);
  ExpectedSamples expected(proc_.string(), 100);
  expected.StartHost();
  SetHost(1300, 500);  // 3 s
  expected.Update();
  expected.SetFrequency(50);
  EXPECT_EQ(expected.samples(), Samples(300, 100));
  SetHost(1500, 500);  // 2 s more
  expected.Update();
  EXPECT_EQ(expected.samples(), Samples(300, 100) + Samples(200, 50));
}

TEST_F(ExpectedSamplesTest, AProcessThatIsGoneKeepsItsLastReading) {
  SetProcess(7, 0, 0);
  ExpectedSamples expected(proc_.string(), 100);
  expected.StartProcess(7, false);
  SetProcess(7, 300, 0);
  expected.Update();
  fs::remove_all(proc_ / "7");
  expected.Update();
  EXPECT_EQ(expected.samples(), Samples(300, 100));
}

TEST_F(ExpectedSamplesTest, WhatAnEndedProcessUsedStaysAndItsPidMayBeReused) {
  SetProcess(7, 0, 0);
  ExpectedSamples expected(proc_.string(), 100);
  expected.StartProcess(7, true);
  SetProcess(7, 50, 50);
  expected.EndProcess(7);
  expected.EndProcess(7);
  EXPECT_EQ(expected.samples(), Samples(100, 100));
  SetProcess(7, 20, 0);
  expected.StartProcess(7, true);
  EXPECT_EQ(expected.samples(), Samples(120, 100));
}

TEST_F(ExpectedSamplesTest, ForACommandAllTimeSinceItsBirthCounts) {
  SetProcess(7, 50, 0);
  ExpectedSamples expected(proc_.string(), 100);
  expected.StartProcess(7, true);
  EXPECT_EQ(expected.samples(), Samples(50, 100));
  expected.SetChildCpuNs(2'000'000'000);
  EXPECT_EQ(expected.samples(), Samples(200, 100)) << "what its children used, known once it was waited for";
}

TEST_F(ExpectedSamplesTest, TheHostIsAllThatWasNotIdle) {
  SetHost(1000, 5000);
  ExpectedSamples expected(proc_.string(), 99);
  expected.StartHost();
  SetHost(1200, 9000);
  expected.Update();
  EXPECT_EQ(expected.samples(), Samples(200, 99));
}

}  // namespace
}  // namespace clrsampler
