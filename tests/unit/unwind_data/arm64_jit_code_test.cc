#include "unwind_data/arm64_jit_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr uint64_t kHeap = 0x7f0000000000;

class Arm64JitCodeTest : public testing::Test {
 protected:
  Arm64JitCodeTest() {
    mapping_.start = kHeap;
    mapping_.end = kHeap + 0x2000;
    mapping_.kind = MappingKind::kJitMemory;
    process_.mappings.Insert(mapping_);
    memory_.resize(0x2000 / 4, 0xd503201f);  // nop
    // stp x29, x30, [sp, #-32]!; mov x29, sp; blr x16; ldp x29, x30, [sp], #32; ret
    Put(0x100, {0xa9be7bfd, 0x910003fd, 0xd63f0200, 0xa8c27bfd, 0xd65f03c0});
  }
  void Put(uint64_t offset, std::vector<uint32_t> code) {
    std::copy(code.begin(), code.end(), memory_.begin() + static_cast<ptrdiff_t>(offset / 4));
  }
  bool Read(uint64_t address, std::span<std::byte> into) {
    ++reads_;
    if (address < kHeap || address + into.size() > kHeap + readable_) return false;
    std::memcpy(into.data(), reinterpret_cast<const char*>(memory_.data()) + (address - kHeap), into.size());
    return true;
  }
  CodeAt At(uint64_t offset) {
    return code_.At(
        {process_, process_.mappings.Find(kHeap + offset), kHeap + offset, kHeap + offset, MonotonicTime{5}});
  }
  void Sample(uint64_t offset) {
    const uint64_t address = kHeap + offset;
    code_.Observe(process_, {std::span(&address, 1), {}, MonotonicTime{5}});
  }

  std::vector<uint32_t> memory_;
  uint64_t readable_ = 0x2000;
  int reads_ = 0;
  bool dotnet_ = true;
  Mapping mapping_;
  Process process_{ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid()))};
  Arm64JitCode code_{[this](uint32_t, uint64_t address, std::span<std::byte> into) { return Read(address, into); },
                     [this](ProcessKey) { return dotnet_; }};
};

TEST_F(Arm64JitCodeTest, SaysWhetherTheFrameRecordIsInPlace) {
  for (const auto& [offset, sp_above] : std::vector<std::pair<uint64_t, int>>{{0x100, 0}, {0x104, 32}, {0x110, 0}}) {
    const CodeAt code = At(offset);
    EXPECT_EQ(code.kind, CodeKind::kManaged);
    EXPECT_EQ(code.managed, nullptr);
    ASSERT_TRUE(code.has_row) << offset;
    EXPECT_EQ(code.row.cfa_offset, sp_above);
    EXPECT_EQ(code.row.ra, RegisterRule::kSame);
  }
  EXPECT_FALSE(At(0x108).has_row);
  EXPECT_FALSE(At(0x108).may_have_no_record());
}

TEST_F(Arm64JitCodeTest, WhatWasReadWithTheSampleHolds) {
  Sample(0x110);
  readable_ = 0;
  EXPECT_TRUE(At(0x110).has_row);
  EXPECT_EQ(reads_, 1);
  EXPECT_TRUE(At(0x104).may_have_no_record());  // nothing was sampled there
  EXPECT_EQ(code_.counters().unreadable, 1u);
  // Other code may have taken its place since the last sample.
  readable_ = 0x2000;
  Put(0x110, {0xd63f0200});
  Sample(0x110);
  EXPECT_FALSE(At(0x110).has_row);
}

TEST_F(Arm64JitCodeTest, NothingIsReadForReturnAddresses) {
  EXPECT_EQ(At(0x10b).kind, CodeKind::kManaged);
  Sample(0x10b);
  EXPECT_EQ(reads_, 0);
}

TEST_F(Arm64JitCodeTest, ThePageAloneIsEnough) {
  readable_ = 0x1000;
  Put(0xff0, {0xa9417bfd, 0x910083ff, 0xd65f03c0});
  EXPECT_TRUE(At(0xff4).has_row);
  EXPECT_EQ(reads_, 2);
}

TEST_F(Arm64JitCodeTest, OtherMemoryIsNotTouched) {
  dotnet_ = false;
  EXPECT_EQ(At(0x100).kind, CodeKind::kUnknown);
  dotnet_ = true;
  EXPECT_EQ(At(0x3000).kind, CodeKind::kUnknown);
  process_.exited = MonotonicTime{4};
  EXPECT_TRUE(At(0x100).may_have_no_record());
  process_.exited = MonotonicTime::Max();
  process_.exec_announced = MonotonicTime{4};
  Sample(0x100);
  EXPECT_EQ(reads_, 0);
}

TEST_F(Arm64JitCodeTest, AnExecForgets) {
  Sample(0x110);
  process_.exec_count = 1;
  readable_ = 0;
  EXPECT_TRUE(At(0x110).may_have_no_record());
}

}  // namespace
}  // namespace clrsampler
