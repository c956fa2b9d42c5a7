#include "formats/nettrace/time_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "formats/nettrace/nettrace_reader.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/formats/nettrace/collected_events.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class TimeOrderTest : public testing::Test {
 protected:
  void Put(TimeOrder& order, uint64_t ticks, bool sorted = false, absl::string_view payload = "") {
    NettraceEvent event;
    event.metadata = &kind_;
    event.ticks = ticks;
    event.sorted = sorted;
    const std::string bytes(payload);  // gone when this returns
    const std::vector<uint64_t> stack{ticks, 1};
    event.payload = AsBytes(bytes);
    event.stack = stack;
    order.OnEvent(event);
  }

  NettraceMetadata kind_;
  CollectedEvents got_;
};

TEST_F(TimeOrderTest, AMarkGivesOutWhatIsNotNewer) {
  TimeOrder order(got_);
  Put(order, 30, false, "c");
  Put(order, 10, false, "a");
  Put(order, 40);
  EXPECT_THAT(got_.events, IsEmpty());
  Put(order, 30, true, "d");
  EXPECT_THAT(got_.Ticks(), ElementsAre(10, 30, 30));
  EXPECT_EQ(got_.events[0].payload, "a");
  EXPECT_THAT(got_.events[0].stack, ElementsAre(10, 1));
  EXPECT_EQ(got_.events[1].payload + got_.events[2].payload, "cd") << "events of one time keep their order";
  order.Finish();
  EXPECT_THAT(got_.Ticks(), ElementsAre(10, 30, 30, 40));
  EXPECT_EQ(order.unsorted(), 0u);
}

TEST_F(TimeOrderTest, ASequencePointGivesOutAll) {
  TimeOrder order(got_);
  Put(order, 20);
  Put(order, 10);
  order.OnLost(7, 3);
  EXPECT_THAT(got_.lost, ElementsAre(Pair(7, 3)));
  order.OnSequencePoint(25);
  EXPECT_THAT(got_.Ticks(), ElementsAre(10, 20));
  EXPECT_THAT(got_.points, ElementsAre(25));
}

TEST_F(TimeOrderTest, WhatDoesNotFitGoesBeforeItsTimeAndIsCounted) {
  TimeOrder order(got_, 16 << 10);
  const std::string payload(1000, 'p');
  for (uint64_t ticks = 100; ticks < 130; ++ticks) Put(order, ticks, false, payload);
  EXPECT_GE(got_.events.size(), 7u);
  EXPECT_LT(got_.events.size(), 30u);
  const uint64_t given = got_.events.back().event.ticks;
  Put(order, 50);
  Put(order, given);
  order.Finish();
  EXPECT_EQ(got_.events.size(), 32u);
  EXPECT_EQ(order.unsorted(), 1u);
}

TEST_F(TimeOrderTest, EventsOfARuntimeComeInOrderAndAllOfThem) {
  const std::string stream = *ReadWholeFile(TestData("nettrace/11.0.0.nettrace"), 1 << 20);
  TimeOrder order(got_);
  NettraceReader sorted(order);
  CollectedEvents as_they_came;
  NettraceReader unsorted(as_they_came);
  ASSERT_TRUE(sorted.Feed(AsBytes(stream)).ok());
  order.Finish();
  ASSERT_TRUE(unsorted.Feed(AsBytes(stream)).ok());
  std::vector<uint64_t> ticks = as_they_came.Ticks();
  EXPECT_FALSE(std::is_sorted(ticks.begin(), ticks.end())) << "else this test says nothing";
  std::sort(ticks.begin(), ticks.end());
  EXPECT_EQ(got_.Ticks(), ticks);
  EXPECT_EQ(order.unsorted(), 0u);
}

}  // namespace
}  // namespace clrsampler
