#include "capture/allocation_sums.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

TEST(AllocationSumsTest, ASumThatGrewSinceTheLastRecordIsTold) {
  const wire_allocation_sum sum{.process_start_ns = 7, .bytes = 900'000, .hits = 9, .told_ns = 100, .hit_ns = 150};
  const std::optional<wire_allocation> record = RecordOfSum(42, sum);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->header.kind, WIRE_ALLOCATION);
  EXPECT_EQ(record->header.size, sizeof(wire_allocation));
  EXPECT_EQ(record->header.time_ns, 150u) << "the probes were there then";
  EXPECT_EQ(record->tgid, 42u);
  EXPECT_EQ(record->tid, 0u) << "it tells the type of no thread's object";
  EXPECT_EQ(record->process_start_ns, 7u);
  EXPECT_EQ(record->total_bytes, 900'000u);
  EXPECT_EQ(record->total_hits, 9u);
  EXPECT_EQ(record->weight, 0u);
}

TEST(AllocationSumsTest, ASumThatWasToldIsNotToldAgain) {
  EXPECT_FALSE(RecordOfSum(42, {.process_start_ns = 7, .bytes = 1, .hits = 1, .told_ns = 150, .hit_ns = 150}));
}

}  // namespace
}  // namespace clrsampler
