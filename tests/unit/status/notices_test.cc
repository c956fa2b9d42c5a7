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
  EXPECT_EQ(kept, 101u) << "the last one says that no more are shown";
  EXPECT_EQ(notices.counts().at("flood"), 1000u);
}

TEST(NoticesTest, AFloodOfOneKindSaysSoAndSilencesNoOther) {
  Notices notices;
  for (int i = 0; i < 1000; ++i) notices.Add("flood", std::to_string(i), "water");
  EXPECT_EQ(notices.kept().back().message,
            "more than 100 notices of the kind flood came; further ones are counted and not shown");
  EXPECT_TRUE(notices.Add("fire", "7", "it burns"));
  EXPECT_EQ(notices.kept().back().message, "it burns");
  notices.Repeat();
  EXPECT_TRUE(notices.Add("flood", "again", "water"));
}

}  // namespace
}  // namespace clrsampler
