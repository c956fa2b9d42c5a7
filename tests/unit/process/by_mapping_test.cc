#include "process/by_mapping.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

Mapping FileMapping(uint64_t start) {
  Mapping mapping;
  mapping.start = start;
  mapping.end = start + 0x1000;
  mapping.file_offset = 0x2000;
  mapping.inode = 7;
  mapping.device_major = 8;
  mapping.device_minor = 1;
  mapping.kind = MappingKind::kFile;
  return mapping;
}

const Process kOne({1, 1}, TargetFiles("/nonexistent", 1)), kOther({1, 2}, TargetFiles("/nonexistent", 1));

TEST(ByMappingTest, HoldsForAMappingAsItWas) {
  ByMapping<int> known;
  EXPECT_EQ(known.Of(kOne, FileMapping(0x10000)), 0);
  known.Of(kOne, FileMapping(0x10000)) = 5;
  EXPECT_EQ(known.Of(kOne, FileMapping(0x10000)), 5);
  EXPECT_EQ(known.Of(kOne, FileMapping(0x20000)), 0);
  EXPECT_EQ(known.Of(kOther, FileMapping(0x10000)), 0) << "a later process with this pid";
  EXPECT_EQ(known.Of(kOne, FileMapping(0x10000)), 5);
  kOne.ends->Announce(kOne.key);
  EXPECT_EQ(known.Of(kOne, FileMapping(0x10000)), 0);
}

TEST(ByMappingTest, WhateverIsElseMakesItAnother) {
  const auto changes = {+[](Mapping& mapping) { mapping.end += 0x1000; },
                        +[](Mapping& mapping) { mapping.file_offset += 0x1000; },
                        +[](Mapping& mapping) { ++mapping.inode; }, +[](Mapping& mapping) { ++mapping.device_major; },
                        +[](Mapping& mapping) { ++mapping.device_minor; }};
  for (const auto change : changes) {
    ByMapping<int> known;
    known.Of(kOne, FileMapping(0x10000)) = 5;
    Mapping other = FileMapping(0x10000);
    change(other);
    EXPECT_EQ(known.Of(kOne, other), 0);
    EXPECT_EQ(known.Of(kOne, FileMapping(0x10000)), 0) << "and the first one is gone";
  }
}

TEST(ByMappingTest, IsBounded) {
  ByMapping<int> known;
  for (uint64_t i = 0; i < 3 * ByMapping<int>::kMaxKept; ++i) known.Of(kOne, FileMapping(0x10000 + (i << 13))) = 5;
  EXPECT_LE(known.heap_bytes(), ByMapping<int>::kMaxKept * 4 * 64);
  EXPECT_GT(known.heap_bytes(), 0u);
}

}  // namespace
}  // namespace clrsampler
