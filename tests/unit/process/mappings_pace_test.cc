#include "process/mappings_pace.h"

#include <gtest/gtest.h>

#include "os/clock.h"

namespace clrsampler {
namespace {

void AddPages(MappingTable& table, uint64_t first, uint64_t count) {
  for (uint64_t page = first; page < first + count; ++page) {
    Mapping mapping;
    mapping.start = page * 0x1000;
    mapping.end = mapping.start + 0x1000;
    table.Insert(mapping);
  }
}

TEST(MappingsPaceTest, AnOrdinaryProcessIsLookedAtWithEachChangeAndNeverWithoutOne) {
  FakeClock clock;
  MappingTable table;
  MappingsPace pace;
  for (uint64_t page = 1; page <= 2000; ++page) {
    AddPages(table, page, 1);
    EXPECT_TRUE(pace.Due(table, clock));
    EXPECT_FALSE(pace.Due(table, clock));
  }
}

TEST(MappingsPaceTest, OneWithManyMappingsIsLookedAtAtOnceAndThenSeldom) {
  FakeClock clock;
  MappingTable table;
  MappingsPace pace;
  AddPages(table, 1, 32'000);
  EXPECT_TRUE(pace.Due(table, clock));
  int looks = 0;
  for (int turn = 0; turn < 1200; ++turn) {  // of 50 ms
    clock.Advance(kSecondNs / 20);
    AddPages(table, 1 + static_cast<uint64_t>(turn), 1);
    looks += pace.Due(table, clock);
  }
  EXPECT_EQ(looks, 9) << "one in 6.4 seconds of 60";
}

TEST(MappingsPaceTest, TheLastChangeIsSeenInTheEnd) {
  FakeClock clock;
  MappingTable table;
  MappingsPace pace;
  AddPages(table, 1, 4000);
  EXPECT_TRUE(pace.Due(table, clock));
  AddPages(table, 5000, 1);
  EXPECT_FALSE(pace.Due(table, clock));
  clock.Advance(kSecondNs);
  EXPECT_TRUE(pace.Due(table, clock));
}

}  // namespace
}  // namespace clrsampler
