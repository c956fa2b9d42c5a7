#include "profile/wait_cycles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(WaitCyclesTest, TwoThatWaitForEachOther) {
  EXPECT_THAT(WaitCycles({{13, 12}, {12, 13}}), ElementsAre(ElementsAre(12, 13)));
}

TEST(WaitCyclesTest, BeginWithTheLowestAndFollowTheWaits) {
  EXPECT_THAT(WaitCycles({{5, 3}, {3, 9}, {9, 5}}), ElementsAre(ElementsAre(3, 9, 5)));
}

TEST(WaitCyclesTest, WhoWaitsForACircleIsNoPartOfIt) {
  EXPECT_THAT(WaitCycles({{1, 2}, {2, 3}, {3, 2}, {4, 1}}), ElementsAre(ElementsAre(2, 3)));
}

TEST(WaitCyclesTest, EachCircleIsToldOnce) {
  EXPECT_THAT(WaitCycles({{1, 2}, {2, 1}, {7, 8}, {8, 7}, {9, 8}}), ElementsAre(ElementsAre(1, 2), ElementsAre(7, 8)));
}

TEST(WaitCyclesTest, AChainIsNone) {
  EXPECT_THAT(WaitCycles({{1, 2}, {2, 3}, {4, 2}}), IsEmpty());
  EXPECT_THAT(WaitCycles({}), IsEmpty());
}

}  // namespace
}  // namespace clrsampler
