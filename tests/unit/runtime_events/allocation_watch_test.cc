#include "runtime_events/allocation_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace clrsampler {
namespace {

using testing::ElementsAre;

constexpr ProcessKey kShop{42, 7};
constexpr uint64_t kOrderType = 0x7000;

class AllocationWatchTest : public testing::Test {
 protected:
  struct Given {
    std::vector<std::string> stack;
    uint64_t bytes;
  };

  AllocationWatchTest()
      : watch_({.on_allocation =
                    [this](const ObservedAllocation& allocation) {
                      Given given{{}, allocation.bytes};
                      for (const FrameId frame : allocation.frames) given.stack.push_back(frames_.at(frame).text);
                      given_.push_back(given);
                    },
                .type_frame = [this](const Process&, uint64_t type) -> std::optional<FrameId> {
                  if (type != kOrderType) return std::nullopt;
                  return frames_.Intern(Frame{FrameKind::kType, NameSource::kRuntimeMemory, "Shop.Order", "", ""});
                }},
               frames_) {}

  FrameId Managed(const char* text) {
    return frames_.Intern(Frame{FrameKind::kJit, NameSource::kRuntimeMemory, text, "", ""});
  }
  FrameId Native(const char* text) {
    return frames_.Intern(Frame{FrameKind::kNative, NameSource::kElfSymbols, text, "", ""});
  }

  // An event of thread 1, with sums that grow by `bytes` and one hit.
  wire_allocation Event(uint64_t time, uint64_t bytes, uint32_t weight = WIRE_ALLOCATION_ONE) {
    wire_allocation event{};
    event.header.time_ns = time;
    event.tgid = kShop.tgid;
    event.tid = 1;
    event.bytes = bytes;
    event.weight = weight;
    event.total_bytes = sum_bytes_ += bytes;
    event.total_hits = ++sum_hits_;
    return event;
  }
  void Take(const wire_allocation& event, MonotonicTime types_since = MonotonicTime::Min()) {
    const AllocationWatch::Since since = watch_.Note(kShop, event);
    watch_.Handle(kShop, watch_.Arrived(process_, event, since, types_since));
  }
  uint64_t SeenBytes() {
    watch_.GiveWaiting(kShop);
    const std::optional<AllocationWatch::Stretch> stretch = watch_.TakeStretch(kShop);
    return stretch ? stretch->bytes : 0;
  }
  void TakeStack(uint64_t time, std::vector<FrameId> frames) {
    wire_cpu_sample sample{};
    sample.header.time_ns = time;
    sample.tid = 1;
    watch_.HandleStack(kShop, sample, frames);
  }

  FrameTable frames_;
  const Process process_{kShop, TargetFiles("/nonexistent", kShop.tgid)};
  std::vector<Given> given_;
  AllocationWatch watch_;
  uint64_t sum_bytes_ = 0, sum_hits_ = 0;
};

TEST_F(AllocationWatchTest, AStackIsGivenWithItsTypeWhichTheNextEventTells) {
  Take(Event(100, 110'000));
  TakeStack(100, {Native("libc.so start"), Managed("Main"), Managed("Shop.Cart.Add"), Native("JIT_New")});
  EXPECT_TRUE(given_.empty()) << "its type is still to come";
  wire_allocation next = Event(200, 100'000);
  next.type_before = kOrderType;
  next.time_before = 100;
  Take(next);
  ASSERT_EQ(given_.size(), 1u);
  EXPECT_THAT(given_[0].stack, ElementsAre("libc.so start", "Main", "Shop.Cart.Add", "Shop.Order"));
  EXPECT_EQ(given_[0].bytes, 110'000u);
  watch_.GiveWaiting(kShop);
  ASSERT_EQ(given_.size(), 2u);
  EXPECT_THAT(given_[1].stack, ElementsAre("[stack not taken]", "[type not seen]"));
  const std::optional<AllocationWatch::Stretch> stretch = watch_.TakeStretch(kShop);
  ASSERT_TRUE(stretch.has_value());
  EXPECT_EQ(stretch->factor, 1);
  EXPECT_EQ(stretch->bytes, 210'000u);
  EXPECT_EQ(watch_.counters().without_stack, 1u);
}

TEST_F(AllocationWatchTest, BytesThatNoStackStandsForAreTheirOwn) {
  watch_.GiveWithoutStack(kShop, {300}, 256'000);
  ASSERT_EQ(given_.size(), 1u);
  EXPECT_THAT(given_[0].stack, ElementsAre("[stack not taken]", "[type not seen]"));
  EXPECT_EQ(given_[0].bytes, 256'000u);
  const std::optional<AllocationWatch::Stretch> stretch = watch_.TakeStretch(kShop);
  ASSERT_TRUE(stretch.has_value()) << "of a process that no event has come from";
  EXPECT_EQ(stretch->bytes, 0u);
}

TEST_F(AllocationWatchTest, ATypeOfAnotherRecordIsNotThisOnes) {
  Take(Event(100, 1));
  wire_allocation next = Event(200, 1);
  next.type_before = kOrderType;
  next.time_before = 150;  // a record that was lost on the way
  Take(next);
  EXPECT_EQ(given_.at(0).stack.back(), "[type not seen]");
}

TEST_F(AllocationWatchTest, ATypeFromBeforeTheProbesWereAllThereIsNotBelieved) {
  Take(Event(100, 1));
  wire_allocation next = Event(200, 1);
  next.type_before = kOrderType;
  next.time_before = 100;
  Take(next, MonotonicTime{101});
  EXPECT_EQ(given_.at(0).stack.back(), "[type not seen]");
}

TEST_F(AllocationWatchTest, ATypeThatMemoryDoesNotNameHasNone) {
  Take(Event(100, 1));
  wire_allocation next = Event(200, 1);
  next.type_before = kOrderType + 8;
  next.time_before = 100;
  Take(next);
  EXPECT_EQ(given_.at(0).stack.back(), "[type not seen]");
  EXPECT_EQ(watch_.counters().types_not_named, 1u);
}

TEST_F(AllocationWatchTest, AStackOfAnotherTimeIsNotThisRecords) {
  Take(Event(100, 1));
  TakeStack(99, {Managed("Main")});
  watch_.GiveWaiting(kShop);
  EXPECT_THAT(given_.at(0).stack, ElementsAre("[stack not taken]", "[type not seen]"));
}

TEST_F(AllocationWatchTest, HitsThatWereOnlySummedUpCountByFactor) {
  Take(Event(100, 100'000));
  // Nine hits that were not sent; then one that stands for ten.
  for (int i = 0; i < 9; ++i) Event(110, 100'000);
  Take(Event(200, 100'000, 10 * WIRE_ALLOCATION_ONE));
  watch_.GiveWaiting(kShop);
  EXPECT_EQ(given_.at(0).bytes, 100'000u);
  EXPECT_EQ(given_.at(1).bytes, 1'000'000u);
  const AllocationWatch::Stretch stretch = watch_.TakeStretch(kShop).value_or(AllocationWatch::Stretch());
  EXPECT_EQ(stretch.bytes, 1'100'000u);
  EXPECT_EQ(stretch.hits, 11u);
  EXPECT_DOUBLE_EQ(stretch.factor, 1.0);
}

TEST_F(AllocationWatchTest, ARecordThatOnlyTellsATypeAddsNoStack) {
  Take(Event(100, 100'000));
  wire_allocation only_type = Event(200, 100'000, 0);
  only_type.type_before = kOrderType;
  only_type.time_before = 100;
  Take(only_type);
  watch_.GiveWaiting(kShop);
  ASSERT_EQ(given_.size(), 1u);
  EXPECT_EQ(given_[0].stack.back(), "Shop.Order");
  EXPECT_DOUBLE_EQ(watch_.TakeStretch(kShop)->factor, 2.0) << "its bytes are in the sum";
}

TEST_F(AllocationWatchTest, AnEventThatDoesNotCountStillMovesTheSums) {
  Take(Event(100, 100'000));
  watch_.Note(kShop, Event(200, 700'000));  // while probes were planted
  Take(Event(300, 100'000));
  EXPECT_EQ(SeenBytes(), 200'000u);
}

TEST_F(AllocationWatchTest, ASumThatFellBeginsAnew) {
  Take(Event(100, 100'000));
  Take(Event(200, 100'000));
  sum_bytes_ = sum_hits_ = 0;
  Take(Event(300, 5'000));
  EXPECT_EQ(SeenBytes(), 205'000u);
}

TEST_F(AllocationWatchTest, EventsOfTwoCpusMayCross) {
  for (int i = 0; i < 20; ++i) Take(Event(50, 100'000));
  const wire_allocation first = Event(100, 100'000), second = Event(101, 100'000);
  Take(second);
  Take(first);
  EXPECT_EQ(SeenBytes(), 2'200'000u) << "the first is in the sum of the second";
}

TEST_F(AllocationWatchTest, AStretchHasWhatCameSinceTheLastOne) {
  Take(Event(100, 100'000));
  Take(Event(200, 300'000));  // gives the first
  const std::optional<AllocationWatch::Stretch> first = watch_.TakeStretch(kShop);
  EXPECT_EQ(first->bytes, 100'000u) << "the other record waits for its type, and its bytes with it";
  EXPECT_DOUBLE_EQ(first->factor, 1);
  EXPECT_FALSE(watch_.TakeStretch(kShop).has_value()) << "no stack came";
  Take(Event(300, 100'000));  // gives the second
  const std::optional<AllocationWatch::Stretch> second = watch_.TakeStretch(kShop);
  EXPECT_EQ(second->bytes, 300'000u);
  EXPECT_DOUBLE_EQ(second->factor * static_cast<double>(given_.at(1).bytes), 300'000);
}

// A large array that a thread allocates before it rests is not what other threads have allocated.
TEST_F(AllocationWatchTest, BytesThatWaitAreNotGivenToOtherStacks) {
  Take(Event(100, 500'000'000));
  wire_allocation other = Event(200, 100'000);
  other.tid = 77;
  Take(other);
  other = Event(300, 100'000);
  other.tid = 77;
  Take(other);  // gives the one of 100 KB
  const std::optional<AllocationWatch::Stretch> stretch = watch_.TakeStretch(kShop);
  ASSERT_TRUE(stretch.has_value());
  EXPECT_NEAR(static_cast<double>(stretch->bytes), 100'000, 1);
  EXPECT_NEAR(stretch->factor, 1, 0.001);
  watch_.GiveWaiting(kShop);
  EXPECT_NEAR(static_cast<double>(watch_.TakeStretch(kShop)->bytes), 500'100'000, 1);
}

TEST_F(AllocationWatchTest, BytesWithoutAStackWaitForTheNextStretch) {
  Take(Event(100, 100'000));
  EXPECT_FALSE(watch_.TakeStretch(kShop).has_value()) << "its stack waits for its type";
  Take(Event(200, 50'000));
  const std::optional<AllocationWatch::Stretch> stretch = watch_.TakeStretch(kShop);
  ASSERT_TRUE(stretch.has_value());
  EXPECT_EQ(stretch->bytes, 100'000u);
  EXPECT_EQ(stretch->hits, 2u);
}

TEST_F(AllocationWatchTest, WhereAProcessEndsItsBytesAreTakenWithoutAStack) {
  Take(Event(100, 100'000, 0));  // it only adds to the sums
  EXPECT_FALSE(watch_.TakeStretch(kShop).has_value());
  const std::optional<AllocationWatch::Stretch> last = watch_.TakeStretch(kShop, /*ends=*/true);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->bytes, 100'000u);
  EXPECT_FALSE(last->has_stacks);
  EXPECT_EQ(watch_.TakeStretch(kShop, true)->bytes, 0u);
}

TEST_F(AllocationWatchTest, WhatAThreadLeavesIsGivenWhenItEnds) {
  Take(Event(100, 100'000));
  TakeStack(100, {Managed("Main")});
  watch_.EndThread(kShop, 2);
  EXPECT_TRUE(given_.empty()) << "another thread's";
  watch_.EndThread(kShop, 1);
  ASSERT_EQ(given_.size(), 1u);
  EXPECT_THAT(given_[0].stack, ElementsAre("Main", "[type not seen]"));
  const std::optional<AllocationWatch::Stretch> stretch = watch_.TakeStretch(kShop);
  ASSERT_TRUE(stretch.has_value()) << "nothing waits for the end of the process";
  EXPECT_EQ(stretch->bytes, 100'000u);
  EXPECT_DOUBLE_EQ(stretch->factor, 1);
  watch_.EndThread(kShop, 1);
  EXPECT_EQ(given_.size(), 1u);
}

// Ends of threads may be lost, and a hostile program makes up threads.
TEST_F(AllocationWatchTest, ABoundedNumberOfRecordsWaits) {
  constexpr ProcessKey kOther{43, 8};
  const wire_allocation resting = Event(50, 1'000);
  watch_.Handle(kOther, watch_.Arrived(process_, resting, watch_.Note(kOther, resting), MonotonicTime::Min()));
  sum_bytes_ = sum_hits_ = 0;
  for (uint32_t tid = 0; tid < 3 * AllocationWatch::kMostWaiting; ++tid) {
    wire_allocation event = Event(100 + tid, 1'000);
    event.tid = tid;
    Take(event);
  }
  EXPECT_GE(given_.size(), 2 * AllocationWatch::kMostWaiting);
  for (const Given& given : given_) ASSERT_EQ(given.stack.back(), "[type not seen]");
  EXPECT_EQ(SeenBytes(), 3'000 * AllocationWatch::kMostWaiting);
  EXPECT_EQ(given_.size(), 3 * AllocationWatch::kMostWaiting) << "the other process's record still waits";
  watch_.GiveWaiting(kOther);
  EXPECT_EQ(given_.size(), 3 * AllocationWatch::kMostWaiting + 1);
}

TEST_F(AllocationWatchTest, EveryProcessThatSentAnEventIsThere) {
  EXPECT_TRUE(watch_.processes().empty());
  Take(Event(100, 100'000));
  EXPECT_THAT(watch_.processes(), ElementsAre(kShop));
  watch_.End(kShop);
  EXPECT_TRUE(watch_.processes().empty());
}

}  // namespace
}  // namespace clrsampler
