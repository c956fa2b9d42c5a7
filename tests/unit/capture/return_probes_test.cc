#include "capture/return_probes.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

constexpr TrampolineCall kKilled = TrampolineCall::kKilled;
constexpr TrampolineCall kRefused = TrampolineCall::kRefused;

TEST(ReturnProbesTest, AreHarmfulWhereAFilterCanRefuseTheWayBack) {
  EXPECT_FALSE(ReturnProbesAreHarmless(kKilled, kRefused, "6.11.0-29-generic"));
  EXPECT_FALSE(ReturnProbesAreHarmless(kKilled, kRefused, "5.14.0-570.el9.x86_64")) << "ported back";
}

TEST(ReturnProbesTest, AreHarmlessWhereItIsNoMatterForFilters) {
  EXPECT_TRUE(ReturnProbesAreHarmless(kKilled, kKilled, "6.18.0"));
  EXPECT_TRUE(ReturnProbesAreHarmless(kRefused, kKilled, "6.14.1"));
}

TEST(ReturnProbesTest, UnderAFilterOfOurOwnTheReleaseDecides) {
  EXPECT_TRUE(ReturnProbesAreHarmless(kRefused, kRefused, "5.10.0-30-amd64"));
  EXPECT_TRUE(ReturnProbesAreHarmless(kRefused, kRefused, "6.8.0-45-generic"));
  EXPECT_TRUE(ReturnProbesAreHarmless(kRefused, kRefused, "6.10.11+deb"));
  EXPECT_FALSE(ReturnProbesAreHarmless(kRefused, kRefused, "6.11.0"));
  EXPECT_FALSE(ReturnProbesAreHarmless(kRefused, kRefused, "7.0.1"));
  EXPECT_FALSE(ReturnProbesAreHarmless(kRefused, kRefused, "unknown"));
}

TEST(ReturnProbesTest, TryingThemEndsWithAnAnswer) {
  const absl::Status status = CheckReturnProbes();
  EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(CheckReturnProbes(), status);
}

}  // namespace
}  // namespace clrsampler
