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

TEST_F(RecordOrderTest, ThereIsALimitToWaiting) {
  for (size_t i = 0; i < RecordOrder::kMostHeld + 3; ++i) Add(kNow - 1);
  order_.GiveOut(kNow);
  EXPECT_EQ(times_.size(), 3u);
}

}  // namespace
}  // namespace clrsampler
