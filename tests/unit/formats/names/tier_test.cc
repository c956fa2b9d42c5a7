#include "formats/names/tier.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

TEST(TierTest, WhichCodeRunsStatementByStatement) {
  for (const absl::string_view word : {"QuickJitted", "InstrumentedTier", "MinOptJitted"}) {
    EXPECT_TRUE(tier::IsUnoptimised(word)) << word;
  }
  // A tier that is not known is not taken for exact.
  for (const absl::string_view word : {"Optimized", "OptimizedTier1", "OptimizedTier1OSR", "InstrumentedTierOptimized",
                                       "PreJIT", "PreJit-cold", "Unknown", ""}) {
    EXPECT_FALSE(tier::IsUnoptimised(word)) << word;
  }
}

}  // namespace
}  // namespace clrsampler
