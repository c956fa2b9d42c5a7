#include "capture/drop_counters.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

namespace clrsampler {
namespace {

TEST(DropCountersTest, EveryReasonHasAWordOfItsOwn) {
  std::set<std::string> names = {"unknown"};
  for (int reason = 0; reason < WIRE_DROP_COUNT; ++reason) {
    EXPECT_TRUE(names.insert(std::string(DropName(static_cast<wire_drop>(reason)))).second) << reason;
  }
  names = {"unknown"};
  for (uint16_t reason = 0; reason < WIRE_STOP_COUNT; ++reason) {
    EXPECT_TRUE(names.insert(std::string(StopName(reason))).second) << reason;
  }
}

TEST(DropCountersTest, NumbersOfANewerKernelSideReadUnknown) {
  EXPECT_EQ(DropName(static_cast<wire_drop>(3)), "unknown");
  EXPECT_EQ(StopName(WIRE_STOP_COUNT), "unknown");
  EXPECT_EQ(StopName(32708), "unknown") << "a damaged stream may say anything";
}

TEST(DropCountersTest, SumsOverCpus) {
  std::array<wire_counters, 3> cpus{};
  for (wire_counters& one : cpus) {
    one.hits = 10;
    one.idle = 3;
    one.filtered = 2;
    one.sent = 1;
    for (auto& drop : one.drops) drop = 2;
  }
  const wire_counters sum = SumCounters(cpus);
  EXPECT_EQ(sum.hits, 30u);
  EXPECT_EQ(sum.idle, 9u);
  EXPECT_EQ(sum.filtered, 6u);
  EXPECT_EQ(sum.sent, 3u);
  for (const auto drop : sum.drops) EXPECT_EQ(drop, 6u);
}

}  // namespace
}  // namespace clrsampler
