#include "output/pause_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace clrsampler {
namespace {

using testing::HasSubstr;

Pause PauseOf(uint64_t requested_ns, uint64_t suspend_ns, uint64_t pause_ns) {
  Pause pause;
  pause.requested = {requested_ns};
  pause.stopped = {requested_ns + suspend_ns};
  pause.resume_begun = {requested_ns + pause_ns};
  pause.reason = 1;
  pause.kind = PauseKind::kBlockingGc;
  pause.generation = 1;
  pause.gc_reason = 4;
  pause.tid = 4711;
  pause.comm = ".NET TP\x1b[2JWorker";
  return pause;
}

TEST(DurationTextTest, HasTheUnitThatFits) {
  EXPECT_EQ(DurationText(0), "0 us");
  EXPECT_EQ(DurationText(37'400), "37 us");
  EXPECT_EQ(DurationText(999'999), "1000 us");
  EXPECT_EQ(DurationText(4'200'000), "4.20 ms");
  EXPECT_EQ(DurationText(42'000'000), "42.0 ms");
  EXPECT_EQ(DurationText(1'310'000'000), "1.31 s");
}

TEST(PauseLineTest, SaysWhatForHowLongAndByWhomAndNothingThatATerminalObeys) {
  const std::string line = PauseLine(PauseOf(5'250'000'000, 31'000, 1'200'000), {5'000'000'000});
  EXPECT_THAT(line, HasSubstr("     0.250  gc gen1 blocking, alloc-loh"));
  EXPECT_THAT(line, HasSubstr("pause 1.20 ms"));
  EXPECT_THAT(line, HasSubstr("stopped after 31 us"));
  EXPECT_THAT(line, HasSubstr("by 4711 .NET TP"));
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
}

TEST(DurationHistogramTest, PercentilesAreAtMostASixteenthTooMuch) {
  std::mt19937_64 random(1);
  DurationHistogram histogram;
  std::vector<uint64_t> values;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(static_cast<uint64_t>(std::exp2(std::uniform_real_distribution<double>(0, 40)(random))));
    histogram.Add(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double percent : {1.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    const uint64_t exact = values[static_cast<size_t>(std::ceil(20'000 * percent / 100)) - 1];
    EXPECT_GE(histogram.Percentile(percent), exact) << percent;
    EXPECT_LE(histogram.Percentile(percent), exact + exact / 16) << percent;
  }
  EXPECT_EQ(histogram.Percentile(100), values.back());
  EXPECT_EQ(histogram.max_ns(), values.back());
  EXPECT_EQ(histogram.count(), 20'000u);
}

TEST(DurationHistogramTest, TheSmallestAndTheLargestHaveAPlace) {
  DurationHistogram histogram;
  EXPECT_EQ(histogram.Percentile(50), 0u);
  histogram.Add(0);
  histogram.Add(~uint64_t{0});
  EXPECT_EQ(histogram.Percentile(50), 0u);
  EXPECT_EQ(histogram.Percentile(100), ~uint64_t{0});
}

TEST(PauseSummaryTest, CountsByKindAndDrawsAHistogram) {
  PauseSummary summary;
  EXPECT_THAT(summary.Text(2), HasSubstr("no pause in 2.0 s"));
  for (uint64_t i = 0; i < 99; ++i) summary.Add(PauseOf(1'000'000'000 + i * 10'000'000, 10'000, 300'000));
  Pause other = PauseOf(900'000'000, 2'000'000, 40'000'000);
  other.kind = PauseKind::kOther;
  other.generation.reset();
  other.reason = 3;
  summary.Add(other);
  EXPECT_EQ(summary.first_request().ns, 900'000'000u);
  const std::string text = summary.Text(2);
  EXPECT_THAT(text, HasSubstr("100 pauses in 2.0 s, 69.7 ms in all (3.48 %), of which 2.99 ms to stop the threads"));
  EXPECT_THAT(text, testing::ContainsRegex("gc gen1 blocking +99 +300 us +300 us +300 us +300 us"));
  EXPECT_THAT(text, testing::ContainsRegex("rejit +1 +40.0 ms"));
  EXPECT_THAT(text, testing::ContainsRegex("< 512 us +99 #{50}\n"));
  EXPECT_THAT(text, testing::ContainsRegex("< 65.5 ms +1 #\n"));
}

}  // namespace
}  // namespace clrsampler
