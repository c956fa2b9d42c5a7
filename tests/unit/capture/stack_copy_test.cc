#include "capture/stack_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "unit/capture/live_targets.h"

namespace clrsampler {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kStackPages = 4;

// A stack of four pages below a guard page, with memory of another purpose behind that.
class StackCopyTest : public testing::Test {
 protected:
  StackCopyTest()
      : memory_(mmap(nullptr, 32 * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    mprotect(static_cast<std::byte*>(memory_) + kStackPages * kPageBytes, kPageBytes, PROT_NONE);
  }
  ~StackCopyTest() override { munmap(memory_, 32 * kPageBytes); }

  uint64_t AddressOf(size_t word) const { return reinterpret_cast<uint64_t>(memory_) + word * sizeof(uint64_t); }
  void Put(size_t word, uint64_t value) { static_cast<uint64_t*>(memory_)[word] = value; }
  test_support::DecodedSample Copy(size_t sp_word, uint64_t fp) const {
    wire_cpu_sample head{};
    head.sp = AddressOf(sp_word);
    head.fp = fp;
    const auto read = [](uint64_t address, std::span<std::byte> into) {
      return ReadOwnMemoryOf(static_cast<uint32_t>(getpid()), address, into);
    };
    const std::vector<uint64_t> record = RecordWithStack(head, {}, read, 1 << 20);
    return test_support::Decode(std::as_bytes(std::span(record)));
  }

  void* const memory_;
};

TEST_F(StackCopyTest, AStackEndsAtItsGuardPage) {
  const test_support::DecodedSample sample = Copy(100, /*fp=*/7);  // which is no frame
  EXPECT_TRUE(sample.well_formed);
  EXPECT_EQ(sample.head.stop, WIRE_STOP_BAD_FP);
  EXPECT_EQ(sample.tail.size(), kStackPages * kPageBytes / sizeof(uint64_t) - 100);
}

TEST_F(StackCopyTest, WhereTheChainEndsTheRestOfTheStackIsThereToo) {
  const test_support::DecodedSample sample = Copy(100, /*fp=*/0);  // of code without frame pointers
  EXPECT_TRUE(sample.well_formed);
  EXPECT_EQ(sample.head.stop, WIRE_STOP_END);
  EXPECT_TRUE(sample.frames.empty());
  EXPECT_EQ(sample.tail.size(), kStackPages * kPageBytes / sizeof(uint64_t) - 100);
}

}  // namespace
}  // namespace clrsampler
