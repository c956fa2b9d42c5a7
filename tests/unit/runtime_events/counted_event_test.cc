#include "runtime_events/counted_event.h"

#include <gmock/gmock.h>

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ClrEvent Tick(uint64_t bytes) {
  ClrAllocationTick tick;
  tick.bytes = bytes;
  tick.type = "System.String";
  return {ClrEventKind::kObjectAllocated, tick};
}

ClrEvent Thrown() {
  ClrException exception;
  exception.type = "Shop.OutOfStock";
  return {ClrEventKind::kExceptionThrown, exception};
}

ClrEvent Acquired(std::optional<uint64_t> duration_ns) {
  ClrContention wait;
  wait.duration_ns = duration_ns;
  return {ClrEventKind::kThreadAcquiredMonitor, wait};
}

TEST(CountedEventTest, BytesExceptionsAndNanosecondsAreCounted) {
  // The counted event has views of the event's texts.
  const ClrEvent tick_event = Tick(106'600), thrown_event = Thrown(), wait_event = Acquired(20'000'000);
  const std::optional<CountedEvent> tick = CountEvent(ProfileView::kAllocations, tick_event);
  ASSERT_TRUE(tick.has_value());
  EXPECT_EQ(tick->weight, 106'600u);
  EXPECT_EQ(tick->type, "System.String");
  const std::optional<CountedEvent> thrown = CountEvent(ProfileView::kExceptions, thrown_event);
  ASSERT_TRUE(thrown.has_value());
  EXPECT_EQ(thrown->weight, 1u);
  EXPECT_EQ(thrown->type, "Shop.OutOfStock");
  const std::optional<CountedEvent> wait = CountEvent(ProfileView::kContention, wait_event);
  ASSERT_TRUE(wait.has_value());
  EXPECT_EQ(wait->weight, 20'000'000u);
  EXPECT_EQ(wait->type, "");
}

TEST(CountedEventTest, AnEventOfAnotherViewCountsNothing) {
  EXPECT_FALSE(CountEvent(ProfileView::kExceptions, Tick(1)).has_value());
  EXPECT_FALSE(CountEvent(ProfileView::kContention, Thrown()).has_value());
  EXPECT_FALSE(CountEvent(ProfileView::kAllocations, Acquired(1)).has_value());
  EXPECT_FALSE(
      CountEvent(ProfileView::kContention, {ClrEventKind::kThreadBlockedMonitor, ClrContention{}}).has_value());
  EXPECT_FALSE(CountEvent(ProfileView::kCpu, Thrown()).has_value());
  EXPECT_FALSE(CountEvent(ProfileView::kContention, Acquired(std::nullopt)).has_value());
}

TEST(CountedEventTest, NoWeightIsZero) {
  EXPECT_EQ(CountEvent(ProfileView::kAllocations, Tick(0))->weight, 1u);
  EXPECT_EQ(CountEvent(ProfileView::kContention, Acquired(0))->weight, 1u);
}

TEST(CountedEventTest, ViewsHaveTheirKindsAndUnits) {
  EXPECT_THAT(EventKindsOf(ProfileView::kExceptions), ElementsAre(ClrEventKind::kExceptionThrown));
  EXPECT_THAT(EventKindsOf(ProfileView::kContention),
              ElementsAre(ClrEventKind::kThreadBlockedMonitor, ClrEventKind::kThreadAcquiredMonitor));
  EXPECT_THAT(EventKindsOf(ProfileView::kCpu), IsEmpty());
  EXPECT_EQ(EventUnitOf(ProfileView::kAllocations), WeightUnit::kBytes);
  EXPECT_EQ(EventUnitOf(ProfileView::kExceptions), WeightUnit::kSamples);
  EXPECT_EQ(EventUnitOf(ProfileView::kContention), WeightUnit::kNanoseconds);
}

TEST(CountedEventTest, MethodsOfTheRuntimeThatThrowOrWaitAreKnown) {
  Frame frame{FrameKind::kJit, NameSource::kRuntimeMemory, "System.Runtime.EH.RhThrowEx", "System.Private.CoreLib", ""};
  frame.symbol = "System.Runtime.EH::RhThrowEx";
  EXPECT_TRUE(IsEventMachinery(ProfileView::kExceptions, frame));
  EXPECT_FALSE(IsEventMachinery(ProfileView::kContention, frame));
  frame.symbol = "System.Threading.Lock::TryEnterSlow";
  EXPECT_TRUE(IsEventMachinery(ProfileView::kContention, frame));
  // Each of these names begins as one of them does.
  frame.symbol = "System.Threading.LockRecursionException::.ctor";
  EXPECT_FALSE(IsEventMachinery(ProfileView::kContention, frame));
  frame.symbol = "System.Threading.Lock::TryEnterSlow";
  frame.module = "Shop";
  EXPECT_FALSE(IsEventMachinery(ProfileView::kContention, frame));
}

}  // namespace
}  // namespace clrsampler
