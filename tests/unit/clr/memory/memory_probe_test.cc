#include "clr/memory/memory_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/clr/memory/fake_memory.h"

namespace clrsampler {
namespace {

TEST(MemoryProbeTest, TheFirstFailureStaysAndEndsAllReading) {
  FakeMemory memory;
  const uint64_t there = memory.Allocate(16);
  memory.Set<uint64_t>(there, 7);
  MemoryProbe probe(memory);
  EXPECT_EQ(probe.Pointer(there), 7u);
  EXPECT_TRUE(probe.ok());
  EXPECT_EQ(probe.Pointer(0x10), 0u);
  EXPECT_EQ(probe.failure(), ProbeFailure::kUnreadable);
  const uint64_t reads = memory.reads;
  EXPECT_EQ(probe.Pointer(there), 0u);
  EXPECT_EQ(probe.Text(there, 100), "");
  EXPECT_EQ(probe.Block<8>(there), (std::array<std::byte, 8>{}));
  EXPECT_EQ(memory.reads, reads);
  EXPECT_FALSE(probe.Require(false, "other"));
  EXPECT_FALSE(probe.Fail(ProbeFailure::kChanged, "another"));
  EXPECT_EQ(probe.failure(), ProbeFailure::kUnreadable);
  EXPECT_STREQ(probe.detail(), "not mapped");
}

TEST(MemoryProbeTest, AReadThatOnlyBeginsInMemoryGivesZeros) {
  FakeMemory memory;
  const uint64_t there = memory.Allocate(8);
  memory.Set<uint64_t>(there, ~uint64_t{0});
  MemoryProbe probe(memory);
  EXPECT_EQ(probe.Value<uint64_t>(there + 4), 0u);
  EXPECT_FALSE(probe.ok());
}

TEST(MemoryProbeTest, ReadsNoMoreOftenAndNoMoreBytesThanItMay) {
  FakeMemory memory;
  const uint64_t there = memory.Allocate(4096);
  MemoryProbe few(memory, 3, 1 << 20);
  for (int i = 0; i < 3; ++i) few.Pointer(there);
  EXPECT_TRUE(few.ok());
  few.Pointer(there);
  EXPECT_EQ(few.failure(), ProbeFailure::kContradiction);
  EXPECT_EQ(memory.reads, 3u);

  MemoryProbe small(memory, 100, 100);
  small.Block<64>(there);
  EXPECT_TRUE(small.ok());
  small.Block<64>(there);
  EXPECT_FALSE(small.ok());
  EXPECT_EQ(memory.bytes, 24u + 64u);
}

TEST(MemoryProbeTest, ACircleOfPointersEnds) {
  FakeMemory memory;
  const uint64_t there = memory.Allocate(8);
  memory.Set<uint64_t>(there, there);
  MemoryProbe probe(memory);
  uint64_t at = there;
  int steps = 0;
  while (probe.ok()) {
    at = probe.Pointer(at);
    ++steps;
  }
  EXPECT_EQ(at, 0u);
  EXPECT_LE(steps, 513);
}

TEST(MemoryProbeTest, TextsEndAtPagesThatAreNotThere) {
  FakeMemory memory;
  constexpr uint64_t kPage = 0x7F0000001000;
  for (const size_t before : {1, 5, 127, 128, 129, 300}) {
    memory.Map(kPage - 4096, 4096);
    memory.SetText(kPage - before, std::string(before - 1, 'x'));
    MemoryProbe probe(memory);
    EXPECT_EQ(probe.Text(kPage - before, 1024), std::string(before - 1, 'x')) << before;
    EXPECT_TRUE(probe.ok()) << probe.detail();
  }
  // The page behind it is wanted, and is not there.
  memory.Map(kPage - 4096, 4096);
  for (int i = 0; i < 5; ++i) memory.Set<char>(kPage - 5 + i, 'y');
  MemoryProbe probe(memory);
  EXPECT_EQ(probe.Text(kPage - 5, 1024), "");
  EXPECT_EQ(probe.failure(), ProbeFailure::kUnreadable);
  // And now it is.
  memory.Map(kPage - 4096, 4096 + 128);
  for (int i = 0; i < 8; ++i) memory.Set<char>(kPage - 5 + i, 'y');
  MemoryProbe again(memory);
  EXPECT_EQ(again.Text(kPage - 5, 1024), "yyyyyyyy");
}

TEST(MemoryProbeTest, ATextWithoutEndIsRefused) {
  FakeMemory memory;
  const uint64_t there = memory.Allocate(8192);
  for (int i = 0; i < 8192; ++i) memory.Set<char>(there + i, 'z');
  MemoryProbe probe(memory);
  EXPECT_EQ(probe.Text(there, 1000), "");
  EXPECT_EQ(probe.failure(), ProbeFailure::kContradiction);
  EXPECT_LE(memory.bytes, 1000u);
  // Exactly as long as allowed, its end included.
  memory.Set<char>(there + 999, 0);
  MemoryProbe again(memory);
  EXPECT_EQ(again.Text(there, 1000).size(), 999u);
}

TEST(MemoryProbeTest, FieldsOutsideTheirBlockAreZero) {
  std::array<std::byte, 16> block;
  block.fill(std::byte{0xFF});
  EXPECT_EQ(FieldOf<uint64_t>(block, 8), ~uint64_t{0});
  EXPECT_EQ(FieldOf<uint64_t>(block, 9), 0u);
  EXPECT_EQ(FieldOf<uint8_t>(block, 15), 0xFF);
  EXPECT_EQ(FieldOf<uint8_t>(block, 16), 0);
  EXPECT_EQ(FieldOf<uint32_t>(block, UINT32_MAX - 1), 0u);
}

}  // namespace
}  // namespace clrsampler
