#include "formats/inprocess/record_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace clrsampler {
namespace {

using testing::ElementsAre;

constexpr uint64_t kNow = 1'000'000'000;

class RecordOrderTest : public testing::Test {
 protected:
  void Add(uint64_t time_ns) {
    LibraryRecord record;
    record.time_ns = time_ns;
    order_.Add(std::move(record));
  }
  std::vector<uint64_t> times_;
  RecordOrder order_{[this](const LibraryRecord& record) { times_.push_back(record.time_ns); }};
};

TEST_F(RecordOrderTest, OlderOnesComeFirst) {
  for (const uint64_t time : {30, 10, 20}) Add(time);
  order_.GiveOut(kNow);
  EXPECT_THAT(times_, ElementsAre(10, 20, 30));
}

TEST_F(RecordOrderTest, TheClockOfATimeNamespaceIsOurs) {
  constexpr uint64_t kLead = 100'000'000'000'000;
  order_.SetClockLead(kLead);
  for (const uint64_t time : {kNow - 1, uint64_t{10}, kNow - 2}) Add(kLead + time);
  order_.GiveOut(kNow);
  EXPECT_THAT(times_, ElementsAre(10)) << "the newest wait";
  order_.Finish();
  EXPECT_THAT(times_, ElementsAre(10, kNow - 2, kNow - 1));
  order_.SetClockLead(~uint64_t{4});
  Add(10);
  order_.Finish();
  EXPECT_EQ(times_.back(), 15u) << "a clock that is behind ours";
}

TEST_F(RecordOrderTest, TheNewestWaitForThoseOfOtherThreads) {
  Add(kNow + 3);  // the clock was read before the ring
  Add(kNow - 5);
  Add(kNow - RecordOrder::kHoldNs);
  order_.GiveOut(kNow);
  EXPECT_THAT(times_, ElementsAre(kNow - RecordOrder::kHoldNs));
  Add(kNow - 7);
  order_.GiveOut(kNow + RecordOrder::kHoldNs);
  EXPECT_THAT(times_, ElementsAre(kNow - RecordOrder::kHoldNs, kNow - 7, kNow - 5));
  order_.GiveOut(kNow + 2 * RecordOrder::kHoldNs);
  EXPECT_EQ(times_.back(), kNow + 3);
}

TEST_F(RecordOrderTest, TimesInTheFutureDoNotStay) {
  Add(kNow + 1'000'000'000'000);
  Add(kNow - 1);
  order_.GiveOut(kNow);
  EXPECT_THAT(times_, ElementsAre(kNow + 1'000'000'000'000));
  order_.Finish();
  EXPECT_EQ(times_.size(), 2u);
}

TEST_F(RecordOrderTest, ThereIsALimitToTheMemoryOfThoseThatWait) {
  constexpr size_t kTextBytes = 1 << 20;
  for (size_t i = 0; i < RecordOrder::kMostHeldBytes / kTextBytes; ++i) {
    EXPECT_TRUE(times_.empty()) << i;
    LibraryRecord record;
    record.time_ns = kNow - i;
    record.texts[0].assign(kTextBytes, 'x');
    order_.Add(std::move(record));
  }
  // The texts fill the room, and the records themselves are too much.
  ASSERT_EQ(times_.size(), RecordOrder::kMostHeldBytes / kTextBytes / 2);
  EXPECT_EQ(times_.front(), kNow - (RecordOrder::kMostHeldBytes / kTextBytes - 1)) << "the oldest go first";
  order_.GiveOut(kNow);
  EXPECT_EQ(times_.size(), RecordOrder::kMostHeldBytes / kTextBytes / 2) << "the others wait";
  order_.Finish();
  EXPECT_EQ(times_.back(), kNow);
}

TEST_F(RecordOrderTest, MapsCountToo) {
  for (size_t i = 0; i < 100'000 && times_.empty(); ++i) {
    LibraryRecord record;
    record.time_ns = kNow;
    record.map.resize(kMaxInprocessMapEntries);
    order_.Add(std::move(record));
  }
  EXPECT_FALSE(times_.empty());
}

}  // namespace
}  // namespace clrsampler
