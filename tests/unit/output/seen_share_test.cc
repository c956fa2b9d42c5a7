#include "output/seen_share.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

TEST(SeenShareTest, PartsOfTheWhole) {
  const SeenShare share = SeenShareOf(1000, 250, 600);
  EXPECT_FALSE(share.all());
  EXPECT_DOUBLE_EQ(share.seen, 25);
  EXPECT_DOUBLE_EQ(share.counted, 60);
  EXPECT_DOUBLE_EQ(share.estimated, 15);
}

TEST(SeenShareTest, WhatIsNotWorthAWordIsNothing) {
  const SeenShare share = SeenShareOf(1000, 250, 746);
  EXPECT_DOUBLE_EQ(share.estimated, 0);
  EXPECT_DOUBLE_EQ(SeenShareOf(1000, 250, 744).estimated, 0.6);
  EXPECT_DOUBLE_EQ(SeenShareOf(1000, 250, 900).estimated, 0) << "more than there is";
  EXPECT_DOUBLE_EQ(SeenShareOf(1000, 0, 4).counted, 0);
}

TEST(SeenShareTest, AllWasSeenWhereTheWholeIsNotMore) {
  EXPECT_TRUE(SeenShareOf(0, 0, 0).all());
  EXPECT_TRUE(SeenShareOf(1000, 1000, 0).all());
  EXPECT_TRUE(SeenShareOf(999, 1000, 0).all());
}

}  // namespace
}  // namespace clrsampler
