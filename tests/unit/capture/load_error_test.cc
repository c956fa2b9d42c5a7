#include "capture/load_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "capture/feature_report.h"
#include "capture/sampler.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::HasSubstr;

FeatureReport GoodKernel() {
  FeatureReport report;
  report.features = {{std::string(kFeatureBtf), true, true, ""},
                     {std::string(kFeatureRingBuffer), true, true, ""},
                     {std::string(kFeatureProbeReadKernel), true, true, ""},
                     {std::string(kFeatureTaskPtRegs), false, false, ""}};
  return report;
}

TEST(FeatureReportTest, WhatIsOptionalMayBeMissing) { EXPECT_TRUE(GoodKernel().Usable().ok()); }

TEST(FeatureReportTest, NoBtfNamesTheKernelOption) {
  FeatureReport report = GoodKernel();
  report.features[0].present = false;
  EXPECT_THAT(std::string(report.Usable().message()), HasSubstr("/sys/kernel/btf/vmlinux"));
  EXPECT_THAT(HintOf(report.Usable()), HasSubstr("CONFIG_DEBUG_INFO_BTF"));
}

TEST(FeatureReportTest, AnOldKernelIsSaidToBeOld) {
  FeatureReport report = GoodKernel();
  report.features[1].present = false;
  EXPECT_THAT(std::string(report.Usable().message()), HasSubstr("too old: no ring buffer"));
  EXPECT_THAT(HintOf(report.Usable()), HasSubstr("5.10"));
}

TEST(FeatureReportTest, LockdownIsToldFromAnOldKernel) {
  FeatureReport report = GoodKernel();
  report.features[2].present = false;
  report.lockdown = "confidentiality";
  if (!MissingCapabilities().empty()) GTEST_SKIP() << "NOT TESTED: without capabilities these are the cause";
  EXPECT_THAT(HintOf(report.Usable()), HasSubstr("locked down (confidentiality)"));
}

TEST(LoadErrorTest, KnownErrorsHaveAHint) {
  for (int error : {EPERM, EACCES, ENOSYS, EINVAL, ENOMEM}) {
    const absl::Status status = LoadError(error, "loading", "");
    EXPECT_THAT(std::string(status.message()), HasSubstr("loading"));
    EXPECT_NE(HintOf(status), "") << error;
  }
}

TEST(SamplerOptionsTest, RingHoldsTwoSeconds) {
  EXPECT_EQ(DefaultRingBytes(2, 99), 4u << 20);
  EXPECT_EQ(DefaultRingBytes(64, 99), 64u << 20);
  EXPECT_EQ(DefaultRingBytes(1024, 999), 64u << 20);
  EXPECT_EQ(DefaultRingBytes(1, 1), 1u << 20);
}

TEST(SamplerOptionsTest, ImpossibleOptionsAreRefusedBeforeAnythingIsLoaded) {
  SamplerOptions options;
  options.max_frames = WIRE_MAX_USER_FRAMES + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Sampler::Create(options, GoodKernel()).status()));
  options = {};
  options.gap_words = WIRE_MAX_GAP_WORDS + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Sampler::Create(options, GoodKernel()).status()));
  options = {};
  options.frequency_hz = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(Sampler::Create(options, GoodKernel()).status()));
}

}  // namespace
}  // namespace clrsampler
