// Compilations out of real runs.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "output/seen_share.h"
#include "unit/pipeline/played_run.h"

namespace clrsampler {
namespace {

TEST(JitWatchTest, CompilationsAreCountedWithTheirTimeAndTier) {
  PlayedRun run("compilations");
  ASSERT_TRUE(run.Play().ok());
  const auto& jit = run.account().jit;
  EXPECT_EQ(CountOf(jit, "compilations"), 811u);
  EXPECT_EQ(CountOf(jit, "tier_Optimized"), 689u);
  EXPECT_EQ(CountOf(jit, "total_us"), 291424u);
  // The stacks say the same in sum, but for what each is rounded by.
  uint64_t us = 0;
  for (StackId id = 0; id < run.recorder().stacks().size(); ++id) us += run.recorder().stacks().count(id);
  EXPECT_NEAR(static_cast<double>(us), 291424.0, 811.0);
}

}  // namespace
}  // namespace clrsampler
