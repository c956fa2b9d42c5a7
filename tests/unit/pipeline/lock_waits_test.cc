#include "pipeline/lock_waits.h"

#include <gmock/gmock.h>

#include "os/clock.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LockWaitsTest, TheEndGetsTheStackOfItsThreadsBeginning) {
  LockWaits waits;
  const FrameId first[] = {1, 2}, second[] = {3};
  waits.Began(10, {100 * kMillisecondNs}, first);
  waits.Began(11, {101 * kMillisecondNs}, second);
  EXPECT_THAT(waits.Ended(11, {121 * kMillisecondNs}, 20 * kMillisecondNs), ElementsAre(3));
  EXPECT_THAT(waits.Ended(10, {150 * kMillisecondNs}, 50 * kMillisecondNs), ElementsAre(1, 2));
}

TEST(LockWaitsTest, AnEndWithoutABeginningHasNoStack) {
  LockWaits waits;
  const FrameId frames[] = {1};
  EXPECT_THAT(waits.Ended(10, {100 * kMillisecondNs}, kMillisecondNs), IsEmpty());
  waits.Began(10, {200 * kMillisecondNs}, frames);
  EXPECT_THAT(waits.Ended(10, {201 * kMillisecondNs}, kMillisecondNs), ElementsAre(1));
  EXPECT_THAT(waits.Ended(10, {202 * kMillisecondNs}, kMillisecondNs), IsEmpty());
}

// Its end was lost, and with it the beginning of the next one.
TEST(LockWaitsTest, AnotherWaitsBeginningIsNotTaken) {
  LockWaits waits;
  const FrameId frames[] = {1};
  waits.Began(10, {100 * kMillisecondNs}, frames);
  EXPECT_THAT(waits.Ended(10, {500 * kMillisecondNs}, 20 * kMillisecondNs), IsEmpty());
  waits.Began(10, {600 * kMillisecondNs}, frames);
  EXPECT_THAT(waits.Ended(10, {601 * kMillisecondNs}, 300 * kMillisecondNs), IsEmpty());
  // A time that would be before the clock began.
  waits.Began(10, {20 * kMillisecondNs}, frames);
  EXPECT_THAT(waits.Ended(10, {21 * kMillisecondNs}, UINT64_MAX), IsEmpty());
}

TEST(LockWaitsTest, ThreadsThatNeverEndTheirWaitsTakeNoMoreThanTheBound) {
  LockWaits waits;
  const FrameId frames[] = {1};
  for (uint64_t tid = 0; tid <= LockWaits::kMaxWaiting; ++tid) waits.Began(tid, {100 * kMillisecondNs}, frames);
  EXPECT_THAT(waits.Ended(0, {101 * kMillisecondNs}, kMillisecondNs), IsEmpty());
  EXPECT_THAT(waits.Ended(LockWaits::kMaxWaiting, {101 * kMillisecondNs}, kMillisecondNs), ElementsAre(1));
}

}  // namespace
}  // namespace clrsampler
