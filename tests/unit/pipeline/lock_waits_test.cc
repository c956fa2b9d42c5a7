#include "pipeline/lock_waits.h"

#include <gmock/gmock.h>

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kMs = 1'000'000;

TEST(LockWaitsTest, TheEndGetsTheStackOfItsThreadsBeginning) {
  LockWaits waits;
  const FrameId first[] = {1, 2}, second[] = {3};
  waits.Began(10, {100 * kMs}, first);
  waits.Began(11, {101 * kMs}, second);
  EXPECT_THAT(waits.Ended(11, {121 * kMs}, 20 * kMs), ElementsAre(3));
  EXPECT_THAT(waits.Ended(10, {150 * kMs}, 50 * kMs), ElementsAre(1, 2));
}

TEST(LockWaitsTest, AnEndWithoutABeginningHasNoStack) {
  LockWaits waits;
  const FrameId frames[] = {1};
  EXPECT_THAT(waits.Ended(10, {100 * kMs}, kMs), IsEmpty());
  waits.Began(10, {200 * kMs}, frames);
  EXPECT_THAT(waits.Ended(10, {201 * kMs}, kMs), ElementsAre(1));
  EXPECT_THAT(waits.Ended(10, {202 * kMs}, kMs), IsEmpty());
}

// Its end was lost, and with it the beginning of the next one.
TEST(LockWaitsTest, AnotherWaitsBeginningIsNotTaken) {
  LockWaits waits;
  const FrameId frames[] = {1};
  waits.Began(10, {100 * kMs}, frames);
  EXPECT_THAT(waits.Ended(10, {500 * kMs}, 20 * kMs), IsEmpty());
  waits.Began(10, {600 * kMs}, frames);
  EXPECT_THAT(waits.Ended(10, {601 * kMs}, 300 * kMs), IsEmpty());
  // A time that would be before the clock began.
  waits.Began(10, {20 * kMs}, frames);
  EXPECT_THAT(waits.Ended(10, {21 * kMs}, UINT64_MAX), IsEmpty());
}

TEST(LockWaitsTest, ThreadsThatNeverEndTheirWaitsTakeNoMoreThanTheBound) {
  LockWaits waits;
  const FrameId frames[] = {1};
  for (uint64_t tid = 0; tid <= LockWaits::kMaxWaiting; ++tid) waits.Began(tid, {100 * kMs}, frames);
  EXPECT_THAT(waits.Ended(0, {101 * kMs}, kMs), IsEmpty());
  EXPECT_THAT(waits.Ended(LockWaits::kMaxWaiting, {101 * kMs}, kMs), ElementsAre(1));
}

}  // namespace
}  // namespace clrsampler
