#include "formats/nettrace/lost_events.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

TEST(LostEventsTest, CountsWhatIsMissingBeforeAnEvent) {
  LostEvents lost;
  EXPECT_EQ(*lost.Came(1, 1), 0u);
  EXPECT_EQ(*lost.Came(1, 2), 0u);
  EXPECT_EQ(*lost.Came(1, 5), 2u);
  EXPECT_EQ(*lost.Came(2, 4), 3u) << "the first ones of a thread";
  EXPECT_EQ(*lost.Came(1, 6), 0u);
}

TEST(LostEventsTest, NumbersGoRound) {
  LostEvents lost;
  lost.BeginPoint();
  EXPECT_EQ(*lost.Listed(1, 0x7fff'ffff), 0x7fff'ffffu);
  lost.EndPoint();
  lost.BeginPoint();
  EXPECT_EQ(*lost.Listed(1, 0xffff'fffe), 0x7fff'ffffu);
  lost.EndPoint();
  EXPECT_EQ(*lost.Came(1, 0xffff'ffff), 0u);
  EXPECT_EQ(*lost.Came(1, 0), 0u);
  EXPECT_EQ(*lost.Came(1, 2), 1u);
}

TEST(LostEventsTest, AnOldIdOfANewThreadLosesNothing) {
  LostEvents lost;
  EXPECT_EQ(*lost.Came(1, 1), 0u);
  EXPECT_EQ(*lost.Came(1, 2), 0u);
  EXPECT_EQ(*lost.Came(1, 1), 0u);
  EXPECT_EQ(*lost.Came(1, 2), 0u);
}

TEST(LostEventsTest, AListSaysWhatNeverCame) {
  LostEvents lost;
  EXPECT_EQ(*lost.Came(1, 1), 0u);
  EXPECT_EQ(*lost.Came(2, 1), 0u);
  EXPECT_EQ(*lost.Came(2, 2), 0u);
  EXPECT_EQ(*lost.Came(3, 1), 0u);
  lost.BeginPoint();
  EXPECT_EQ(*lost.Listed(1, 4), 3u);
  EXPECT_EQ(*lost.Listed(2, 1), 0u) << "a lower bound";
  EXPECT_EQ(*lost.Listed(9, 2), 2u) << "a thread all of whose events were lost";
  lost.EndPoint();
  EXPECT_EQ(*lost.Came(1, 5), 0u);
  EXPECT_EQ(*lost.Came(2, 3), 0u);
  EXPECT_EQ(*lost.Came(3, 1), 0u) << "it had ended";
}

TEST(LostEventsTest, TheTableHasALimit) {
  LostEvents lost;
  for (uint64_t thread = 0; thread < kMaxEventThreads; ++thread) ASSERT_TRUE(lost.Came(thread, 1).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(lost.Came(kMaxEventThreads, 1).status()));
  EXPECT_TRUE(lost.Came(3, 2).ok());
  lost.BeginPoint();
  for (uint64_t thread = 0; thread < kMaxEventThreads; ++thread) ASSERT_TRUE(lost.Listed(thread, 1).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(lost.Listed(kMaxEventThreads, 1).status()));
}

}  // namespace
}  // namespace clrsampler
