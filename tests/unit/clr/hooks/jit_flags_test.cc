#include "clr/hooks/jit_flags.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

constexpr uint64_t Bits(std::initializer_list<int> numbers) {
  uint64_t bits = 0;
  for (const int number : numbers) bits |= uint64_t{1} << number;
  return bits;
}

// As compileMethod of 8.0.30, 9.0.19, 10.0.12 and 10.0.14 had them beside the perf map's word.
TEST(JitFlagsTest, TiersAreThoseOfThePerfMap) {
  EXPECT_EQ(JitTierText(Bits({4, 19, 26})), "QuickJitted");
  EXPECT_EQ(JitTierText(Bits({26})), "QuickJitted");
  EXPECT_EQ(JitTierText(Bits({4, 18, 26})), "InstrumentedTier");
  EXPECT_EQ(JitTierText(Bits({4, 18, 20, 27})), "InstrumentedTierOptimized");
  EXPECT_EQ(JitTierText(Bits({4, 20, 27})), "OptimizedTier1");
  EXPECT_EQ(JitTierText(Bits({4, 7, 20, 27})), "OptimizedTier1OSR");
  EXPECT_EQ(JitTierText(Bits({4})), "Optimized");
  EXPECT_EQ(JitTierText(Bits({16})), "Optimized");
  EXPECT_EQ(JitTierText(Bits({5})), "MinOptJitted");
  EXPECT_EQ(JitTierText(Bits({2, 4})), "MinOptJitted") << "of a Debug build";
}

TEST(JitFlagsTest, IlStubsHaveABitOfTheirOwn) {
  EXPECT_TRUE(IsIlStub(Bits({16})));
  EXPECT_FALSE(IsIlStub(Bits({26, 19})));
}

}  // namespace
}  // namespace clrsampler
