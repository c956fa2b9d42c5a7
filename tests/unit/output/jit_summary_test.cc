#include "output/jit_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

NamedCompilation Compiled(const std::string& method, const std::string& tier, uint64_t ns, uint32_t bytes = 100) {
  NamedCompilation named;
  named.method = method;
  named.tier = tier;
  named.compilation.began = {1'000'000'000};
  named.compilation.done = {1'000'000'000 + ns};
  named.compilation.bytes = bytes;
  named.compilation.tid = 4711;
  named.compilation.comm = "app\x1b[2J";
  return named;
}

TEST(JitSummaryTest, ALineHasWhatAndForWhom) {
  NamedCompilation named = Compiled("Shop.Order.Total\x07", "OptimizedTier1", 1'200'000, 314);
  named.callers = {"Shop.Cart.Sum", "Shop.Program.Main"};
  const std::string line = CompilationLine(named, {500'000'000});
  EXPECT_THAT(line, ContainsRegex("^ +0\\.500  OptimizedTier1 +1\\.20 ms +314 bytes  Shop\\.Order\\.Total"));
  EXPECT_THAT(line, HasSubstr("for Shop.Cart.Sum  on 4711 app"));
  EXPECT_THAT(line, Not(HasSubstr("\x1b")));
  EXPECT_THAT(line, Not(HasSubstr("\x07")));
}

TEST(JitSummaryTest, SaysWhenThereWasNone) { EXPECT_EQ(JitSummary().Text(2), "nothing was compiled in 2.0 s\n"); }

TEST(JitSummaryTest, SumsByTierAndByMethod) {
  JitSummary summary;
  NamedCompilation outer = Compiled("A.Slow", "QuickJitted", 5'000'000);
  outer.compilation.inner_ns = 1'000'000;
  outer.callers = {"Main"};
  summary.Add(outer);
  summary.Add(Compiled("A.Slow", "OptimizedTier1", 2'000'000, 50));
  summary.Add(Compiled("B.Fast", "QuickJitted", 1'000'000));
  const std::string text = summary.Text(1);
  EXPECT_THAT(text, HasSubstr("3 compilations in 1.0 s took 7.00 ms (0.70 % of one CPU)"));
  EXPECT_THAT(text, ContainsRegex("\nQuickJitted +2 +5\\.00 ms .* 200\n"));
  EXPECT_THAT(text, ContainsRegex("\nOptimizedTier1 +1 +2\\.00 ms .* 50\n"));
  EXPECT_THAT(text,
              ContainsRegex("\n +6\\.00 ms +4\\.00 ms +150  A\\.Slow \\(OptimizedTier1, QuickJitted\\) for Main\n"));
  EXPECT_LT(text.find("A.Slow"), text.find("B.Fast"));
}

TEST(JitSummaryTest, RefusedOnesAreNoTier) {
  JitSummary summary;
  NamedCompilation refused = Compiled("[jit: not compiled]", "Optimized", 1'000);
  refused.compilation.result = 1;
  summary.Add(refused);
  EXPECT_THAT(summary.Text(1), HasSubstr("\nrefused "));
  EXPECT_THAT(CompilationLine(refused, {0}), HasSubstr("refused"));
}

TEST(JitSummaryTest, ManyMethodsTakeNoMoreThanTheirRoom) {
  JitSummary summary;
  for (size_t i = 0; i < JitSummary::kMaxMethods + 10; ++i)
    summary.Add(Compiled("M" + std::to_string(i), "Optimized", 1));
  const std::string text = summary.Text(1);
  EXPECT_THAT(text, HasSubstr("\n10 compilations of further methods"));
  EXPECT_THAT(text, HasSubstr("and 99985 more methods"));
}

}  // namespace
}  // namespace clrsampler
