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

// A quarter of a second after the last one.
class CpuPulseTest : public testing::Test {
 protected:
  std::vector<int> Look(const std::vector<uint64_t>& hits, uint64_t period_ns = kPeriod,
                        const std::vector<int>& cpus = kCpus) {
    return pulse_.Silent(now_ns_ += kQuarter, cpus, hits, period_ns);
  }
  static constexpr uint64_t kQuarter = 250'000'000;
  uint64_t now_ns_ = 0;
  CpuPulse pulse_;
};

TEST_F(CpuPulseTest, ACpuWhoseHitsStandStillIsSilent) {
  uint64_t hits = 0;
  const auto look = [&](uint64_t third) { return Look({hits += 99, 5, third}); };
  EXPECT_THAT(look(100), IsEmpty());
  for (int i = 0; i < 4; ++i) EXPECT_THAT(look(199), IsEmpty()) << i;
  EXPECT_THAT(look(199), ElementsAre(2));
  // It is started again now, which may take another try.
  EXPECT_THAT(look(199), IsEmpty());
  EXPECT_THAT(look(210), IsEmpty());
  for (int i = 0; i < 10; ++i) EXPECT_THAT(look(300 + static_cast<uint64_t>(i)), IsEmpty());
}

TEST_F(CpuPulseTest, AtALowRateItTakesFourPeriods) {
  const std::vector<uint64_t> hits = {7, 0, 9};
  for (int i = 0; i < 160; ++i) EXPECT_THAT(Look(hits, 10'000'000'000), IsEmpty()) << i;
  EXPECT_THAT(Look(hits, 10'000'000'000), ElementsAre(0, 2));
}

TEST_F(CpuPulseTest, AClockOfOneHertzIsNoSilence) {
  uint64_t runs = 0;
  for (int i = 0; i < 100; ++i) {
    if (i % 5 == 0) ++runs;  // late now and then
    EXPECT_THAT(Look({runs, 0, runs}, 1'006'180'340), IsEmpty()) << i;
  }
}

// Whoever stood still himself has seen nothing meanwhile.
TEST_F(CpuPulseTest, OneLongTimeBetweenTwoCallsProvesNothing) {
  const std::vector<uint64_t> hits = {7, 0, 9};
  EXPECT_THAT(Look(hits), IsEmpty());
  now_ns_ += 60'000'000'000;
  EXPECT_THAT(Look(hits), IsEmpty());
  EXPECT_THAT(Look({8, 0, 10}), IsEmpty());
}

TEST_F(CpuPulseTest, OneThatWentAndCameBackIsNew) {
  const std::vector<uint64_t> hits = {7, 0, 9};
  for (int i = 0; i < 4; ++i) EXPECT_THAT(Look(hits), IsEmpty());
  EXPECT_THAT(Look(hits, kPeriod, {0}), ElementsAre(0));
  for (int i = 0; i < 4; ++i) EXPECT_THAT(Look(hits), IsEmpty());
  EXPECT_THAT(Look(hits), ElementsAre(0, 2));
}

TEST_F(CpuPulseTest, CpusThatHaveNoCounterAreNotJudged) {
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Look({1}, kPeriod, {-1, 64}), IsEmpty());
}

}  // namespace
}  // namespace clrsampler
