#include "profile/hold_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace clrsampler {
namespace {

using testing::ElementsAre;

std::vector<int> Pop(HoldQueue<int>& queue, uint64_t horizon) {
  std::vector<int> popped;
  queue.PopUntil({horizon}, [&](MonotonicTime, int value) {
    popped.push_back(value);
    return true;
  });
  return popped;
}

TEST(HoldQueueTest, ItemsLeaveInTheOrderOfTheirTimes) {
  HoldQueue<int> queue;
  queue.Push({30}, 3);
  queue.Push({10}, 1);
  queue.Push({20}, 2);
  EXPECT_THAT(Pop(queue, 20), ElementsAre(1, 2));
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_THAT(Pop(queue, 30), ElementsAre(3));
}

TEST(HoldQueueTest, EqualTimesKeepTheOrderOfArrival) {
  HoldQueue<int> queue;
  for (int i = 0; i < 100; ++i) queue.Push({5}, i);
  const std::vector<int> popped = Pop(queue, 5);
  EXPECT_TRUE(std::is_sorted(popped.begin(), popped.end()));
}

TEST(HoldQueueTest, AnItemOlderThanWhatHasLeftIsCountedAsLateAndStillVisited) {
  HoldQueue<int> queue;
  queue.Push({10}, 1);
  Pop(queue, 10);
  queue.Push({9}, 2);
  EXPECT_THAT(Pop(queue, 10), ElementsAre(2));
  EXPECT_EQ(queue.late(), 1u);
}

TEST(HoldQueueTest, AnItemThatIsNotReadyHoldsBackAllThatFollow) {
  HoldQueue<int> queue;
  for (int i = 1; i <= 4; ++i) queue.Push({static_cast<uint64_t>(i)}, i);
  std::vector<int> popped;
  queue.PopUntil({4}, [&](MonotonicTime, int value) {
    if (value == 3) return false;
    popped.push_back(value);
    return true;
  });
  EXPECT_THAT(popped, ElementsAre(1, 2));
  EXPECT_THAT(Pop(queue, 4), ElementsAre(3, 4));
}

TEST(HoldQueueTest, NothingIsLostOrDoubledUnderRandomUse) {
  std::mt19937 random(3);
  HoldQueue<int> queue;
  std::vector<int> seen(5000, 0);
  uint64_t now = 0;
  for (int i = 0; i < 5000; ++i) {
    queue.Push({now + random() % 50}, i);
    if (i % 7 == 0) {
      now += 20;
      queue.PopUntil({now}, [&](MonotonicTime time, int value) {
        EXPECT_LE(time.ns, now);
        ++seen[static_cast<size_t>(value)];
        return random() % 10 != 0 || --seen[static_cast<size_t>(value)] < 0;
      });
    }
  }
  queue.PopUntil(MonotonicTime::Max(), [&](MonotonicTime, int value) {
    ++seen[static_cast<size_t>(value)];
    return true;
  });
  EXPECT_THAT(seen, testing::Each(1));
}

}  // namespace
}  // namespace clrsampler
