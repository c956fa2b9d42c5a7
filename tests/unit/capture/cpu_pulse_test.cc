#include "capture/cpu_pulse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kPeriod = 10'000'000;
const std::vector<int> kCpus = {0, 2};

TEST(CpuPulseTest, ACpuWhoseHitsStandStillIsSilent) {
  CpuPulse pulse;
  uint64_t hits = 0;
  const auto look = [&](uint64_t second) {
    hits += 99;
    return pulse.Silent(kCpus, std::vector<uint64_t>{hits, 5, second}, kPeriod);
  };
  EXPECT_THAT(look(100), IsEmpty());
  EXPECT_THAT(look(199), IsEmpty());
  EXPECT_THAT(look(199), IsEmpty());
  EXPECT_THAT(look(199), IsEmpty());
  EXPECT_THAT(look(199), ElementsAre(2));
  // It is started again now, which may take another try.
  EXPECT_THAT(look(199), IsEmpty());
  EXPECT_THAT(look(210), IsEmpty());
  for (int i = 0; i < 10; ++i) EXPECT_THAT(look(300 + i), IsEmpty());
}

TEST(CpuPulseTest, AtALowRateItTakesLonger) {
  CpuPulse pulse;
  const std::vector<uint64_t> hits = {7, 0, 9};
  for (int i = 0; i < 41; ++i) EXPECT_THAT(pulse.Silent(kCpus, hits, 10'000'000'000), IsEmpty()) << i;
  EXPECT_THAT(pulse.Silent(kCpus, hits, 10'000'000'000), ElementsAre(0, 2));
}

TEST(CpuPulseTest, OneThatWentAndCameBackIsNew) {
  CpuPulse pulse;
  const std::vector<uint64_t> hits = {7, 0, 9};
  const std::vector<int> first = {0};
  for (int i = 0; i < 3; ++i) EXPECT_THAT(pulse.Silent(kCpus, hits, kPeriod), IsEmpty());
  EXPECT_THAT(pulse.Silent(first, hits, kPeriod), ElementsAre(0));
  EXPECT_THAT(pulse.Silent(kCpus, hits, kPeriod), IsEmpty());
}

TEST(CpuPulseTest, CpusThatHaveNoCounterAreNotJudged) {
  CpuPulse pulse;
  const std::vector<int> far = {-1, 64};
  for (int i = 0; i < 10; ++i) EXPECT_THAT(pulse.Silent(far, std::vector<uint64_t>{1}, kPeriod), IsEmpty());
}

}  // namespace
}  // namespace clrsampler
