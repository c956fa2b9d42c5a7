#include "cli/option_companion.h"

#include <gtest/gtest.h>

#include "status/status.h"

namespace clrsampler {
namespace {

TEST(CheckCompanionTest, AnOptionWithoutEffectIsRefused) {
  EXPECT_TRUE(CheckCompanion("--a", false, "--b", false).ok());
  EXPECT_TRUE(CheckCompanion("--a", false, "--b", true).ok());
  EXPECT_TRUE(CheckCompanion("--a", true, "--b", true).ok());
  const absl::Status refused = CheckCompanion("--a", true, "--b", false);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_EQ(refused.message(), "--a is for --b, which is not given");
  EXPECT_EQ(HintOf(refused), "add --b, or leave --a out");
}

}  // namespace
}  // namespace clrsampler
