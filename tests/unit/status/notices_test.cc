#include "status/notices.h"

#include <gtest/gtest.h>

#include <string>

namespace clrsampler {
namespace {

TEST(NoticesTest, IsSaidOnceASubjectAndCountedAlways) {
  Notices notices;
  EXPECT_TRUE(notices.Add("dead", "7", "it is dead"));
  EXPECT_FALSE(notices.Add("dead", "7", "it is dead"));
  EXPECT_TRUE(notices.Add("dead", "8", "it is dead as well", "bury it"));
  EXPECT_EQ(notices.kept().size(), 2u);
  EXPECT_EQ(notices.counts().at("dead"), 3u);
}

TEST(NoticesTest, WhatWasTakenIsNotSaidAgainUntilItMay) {
  Notices notices;
  notices.Add("dead", "7", "it is dead");
  EXPECT_EQ(notices.TakeKept().size(), 1u);
  EXPECT_FALSE(notices.Add("dead", "7", "it is dead"));
  EXPECT_TRUE(notices.TakeKept().empty());
  notices.Repeat();
  EXPECT_TRUE(notices.Add("dead", "7", "it is dead"));
  EXPECT_EQ(notices.TakeKept().size(), 1u);
  EXPECT_EQ(notices.counts().at("dead"), 3u);
}

TEST(NoticesTest, AFloodIsBoundedHoweverOftenItIsTaken) {
  Notices notices;
  size_t kept = 0;
  for (int i = 0; i < 1000; ++i) {
    notices.Add("flood", std::to_string(i), "water");
    kept += notices.TakeKept().size();
  }
  EXPECT_EQ(kept, 100u);
  EXPECT_EQ(notices.counts().at("flood"), 1000u);
}

}  // namespace
}  // namespace clrsampler
