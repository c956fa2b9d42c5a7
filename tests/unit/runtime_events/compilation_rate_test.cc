#include "runtime_events/compilation_rate.h"

#include <gtest/gtest.h>

#include "os/clock.h"

namespace clrsampler {
namespace {

class CompilationRateTest : public testing::Test {
 protected:
  // So many a second, for so long.
  void Compile(uint32_t a_second, uint32_t ms) {
    for (uint32_t i = 0; i < ms * a_second / 1000; ++i) {
      now_ns_ += 1'000'000'000 / a_second;
      rate_.Note({now_ns_}, 1);
    }
  }

  uint64_t now_ns_ = 5'000 * kMillisecondNs;
  CompilationRate rate_;
};

TEST_F(CompilationRateTest, ThreeFullSecondsInARowAreAStorm) {
  Compile(2000, 2900);
  EXPECT_FALSE(rate_.storm());
  Compile(2000, 300);
  EXPECT_TRUE(rate_.storm());
  EXPECT_FALSE(rate_.calm());
}

TEST_F(CompilationRateTest, AProgramThatStartsIsNone) {
  Compile(5000, 2500);
  Compile(700, 20'000);
  EXPECT_FALSE(rate_.storm());
  EXPECT_FALSE(rate_.calm());
}

TEST_F(CompilationRateTest, CalmSecondsAreItsEndAndSoIsSilence) {
  Compile(2000, 4000);
  Compile(400, 4200);
  EXPECT_TRUE(rate_.calm());
  EXPECT_FALSE(rate_.storm());
  Compile(2000, 4200);
  EXPECT_TRUE(rate_.storm());
  now_ns_ += 10'000 * kMillisecondNs;
  rate_.Note({now_ns_}, 1);
  EXPECT_TRUE(rate_.calm());
  EXPECT_FALSE(rate_.storm());
}

TEST_F(CompilationRateTest, ATimeWithoutProbesIsNoCalm) {
  Compile(2000, 3200);
  now_ns_ += 4'000 * kMillisecondNs;
  rate_.Restart({now_ns_});
  EXPECT_FALSE(rate_.storm());
  EXPECT_FALSE(rate_.calm());
  Compile(2000, 3200);
  EXPECT_TRUE(rate_.storm());
}

TEST_F(CompilationRateTest, WhatWasMissedCountsToo) {
  for (int i = 0; i < 40; ++i) rate_.Note({now_ns_ += 100 * kMillisecondNs}, 200);
  EXPECT_TRUE(rate_.storm());
}

}  // namespace
}  // namespace clrsampler
