#include "clr/runtime_version.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

TEST(RuntimeVersionTest, ThirdFieldIsPatchTimesHundred) {
  EXPECT_EQ(RuntimeVersionFromText("@(#)Version 10.0.1426.52326 @Commit: abc"), "10.0.14");
  EXPECT_EQ(RuntimeVersionFromText("@(#)Version 9.0.124.61010 @Commit: abc"), "9.0.1");
  EXPECT_EQ(RuntimeVersionFromText("@(#)Version 8.0.23.53103 @Commit: abc"), "8.0.0");
}

TEST(RuntimeVersionTest, OtherTextsGiveNothing) {
  EXPECT_EQ(RuntimeVersionFromText(""), "");
  EXPECT_EQ(RuntimeVersionFromText("@(#)Version ten.0.1 "), "");
  EXPECT_EQ(RuntimeVersionFromText("@(#)Version 10.0"), "");
  EXPECT_EQ(RuntimeVersionFromText("Version 10.0.1426.52326"), "");
}

}  // namespace
}  // namespace clrsampler
