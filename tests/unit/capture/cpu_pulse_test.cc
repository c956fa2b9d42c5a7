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

// A quarter of a second after the last one, in which `busy_share` of each CPU's time was used.
class CpuPulseTest : public testing::Test {
 protected:
  std::vector<int> Look(const std::vector<uint64_t>& hits, uint64_t period_ns = kPeriod,
                        const std::vector<int>& cpus = kCpus) {
    now_ns_ += kQuarter;
    busy_ns_ += static_cast<uint64_t>(busy_share_ * kQuarter);
    return pulse_.Silent(now_ns_, cpus, hits, period_ns, [this] {
      ++asked_;
      return std::vector<uint64_t>(3, busy_ns_);
    });
  }
  // How many looks go by until somebody is silent.
  int LooksUntilSilent(const std::vector<uint64_t>& hits, uint64_t period_ns, int most) {
    for (int i = 0; i < most; ++i) {
      if (!Look(hits, period_ns).empty()) return i;
    }
    return most;
  }
  static constexpr uint64_t kQuarter = 250'000'000;
  double busy_share_ = 1;
  int asked_ = 0;
  uint64_t now_ns_ = 0;
  uint64_t busy_ns_ = 0;
  CpuPulse pulse_;
};

TEST_F(CpuPulseTest, ABusyCpuWhoseHitsStandStillIsSilent) {
  uint64_t hits = 0;
  const auto look = [&](uint64_t third) { return Look({hits += 99, 5, third}); };
  EXPECT_THAT(look(100), IsEmpty());
  EXPECT_THAT(look(199), IsEmpty());
  // A second, and one more look, which tells that it was busy in between.
  for (int i = 0; i < 4; ++i) EXPECT_THAT(look(199), IsEmpty()) << i;
  EXPECT_THAT(look(199), ElementsAre(2));
  // It is started again now, which may take another try.
  EXPECT_THAT(look(199), IsEmpty());
  EXPECT_THAT(look(210), IsEmpty());
  asked_ = 0;
  for (int i = 0; i < 10; ++i) EXPECT_THAT(look(300 + static_cast<uint64_t>(i)), IsEmpty());
  EXPECT_EQ(asked_, 0) << "the host's account is read for nothing";
}

TEST_F(CpuPulseTest, AnIdleCpuMaySleep) {
  busy_share_ = 0;
  const std::vector<uint64_t> hits = {7, 0, 9};
  EXPECT_EQ(LooksUntilSilent(hits, kPeriod, 1000), 1000);
  busy_share_ = 0.1;  // a tenth of a second is there after four looks
  EXPECT_EQ(LooksUntilSilent(hits, kPeriod, 1000), 3);
}

TEST_F(CpuPulseTest, AtALowRateItTakesFourBusyPeriods) {
  EXPECT_EQ(LooksUntilSilent({7, 0, 9}, 10'000'000'000, 1000), 4 + 160);
}

TEST_F(CpuPulseTest, AClockOfOneHertzIsNoSilence) {
  uint64_t runs = 0;
  for (int i = 0; i < 100; ++i) {
    if (i % 5 == 0) ++runs;  // late now and then
    EXPECT_THAT(Look({runs, 0, runs}, 1'006'180'340), IsEmpty()) << i;
  }
}

// A thread that stood still itself has seen nothing meanwhile.
TEST_F(CpuPulseTest, OneLongTimeBetweenTwoCallsProvesNothing) {
  const std::vector<uint64_t> hits = {7, 0, 9};
  EXPECT_THAT(Look(hits), IsEmpty());
  now_ns_ += 60'000'000'000;
  busy_ns_ += 60'000'000'000;
  EXPECT_THAT(Look(hits), IsEmpty());
  EXPECT_THAT(Look({8, 0, 10}), IsEmpty());
}

TEST_F(CpuPulseTest, OneThatWentAndCameBackIsNew) {
  const std::vector<uint64_t> hits = {7, 0, 9};
  for (int i = 0; i < 5; ++i) EXPECT_THAT(Look(hits), IsEmpty());
  EXPECT_THAT(Look(hits, kPeriod, {0}), ElementsAre(0));
  for (int i = 0; i < 5; ++i) EXPECT_THAT(Look(hits), IsEmpty());
  EXPECT_THAT(Look(hits), ElementsAre(0, 2));
}

TEST_F(CpuPulseTest, CpusThatHaveNoCounterAreNotJudged) {
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Look({1}, kPeriod, {-1, 64}), IsEmpty());
}

}  // namespace
}  // namespace clrsampler
