#include "capture/stack_copy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "os/unique_fd.h"
#include "unit/capture/live_targets.h"

namespace clrsampler {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kStackPages = 4;
constexpr size_t kPages = kStackPages + 1 + StackMemory::kMaxHoleBytes / kPageBytes;

// A stack of four pages below a guard page, with memory of another purpose behind that.
class StackCopyTest : public testing::Test {
 protected:
  StackCopyTest()
      : memory_(mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    for (size_t page = 0; page < kStackPages; ++page) Put(page * kPageBytes / sizeof(uint64_t), page + 1);
    mprotect(static_cast<std::byte*>(memory_) + kStackPages * kPageBytes, kPageBytes, PROT_NONE);
  }
  ~StackCopyTest() override { munmap(memory_, kPages * kPageBytes); }

  uint64_t AddressOf(size_t word) const { return reinterpret_cast<uint64_t>(memory_) + word * sizeof(uint64_t); }
  void Put(size_t word, uint64_t value) { static_cast<uint64_t*>(memory_)[word] = value; }
  test_support::DecodedSample Copy(size_t sp_word, uint64_t fp) const {
    wire_cpu_sample head{};
    head.sp = AddressOf(sp_word);
    head.fp = fp;
    const StackMemory memory(static_cast<uint32_t>(getpid()));
    const auto read = [&](uint64_t address, std::span<std::byte> into) { return memory.Read(address, into); };
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

// A large buffer of which little was written.
TEST_F(StackCopyTest, APageThatWasNeverTouchedDoesNotEndAStack) {
  ASSERT_EQ(madvise(static_cast<std::byte*>(memory_) + 2 * kPageBytes, kPageBytes, MADV_DONTNEED), 0);
  const test_support::DecodedSample sample = Copy(100, /*fp=*/7);
  ASSERT_EQ(sample.tail.size(), kStackPages * kPageBytes / sizeof(uint64_t) - 100);
  EXPECT_EQ(sample.tail[2 * kPageBytes / sizeof(uint64_t) - 100], 0u);
  EXPECT_EQ(sample.tail[3 * kPageBytes / sizeof(uint64_t) - 100], 4u);
}

TEST_F(StackCopyTest, APageThatTheProcessKeepsBackHoldsNobodyUp) {
  const UniqueFd faults(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC)));
  if (!faults.valid()) GTEST_SKIP() << "no right to hold reads of the kernel up";
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  ASSERT_EQ(ioctl(faults.get(), UFFDIO_API, &api), 0);
  ASSERT_EQ(madvise(static_cast<std::byte*>(memory_) + 2 * kPageBytes, 2 * kPageBytes, MADV_DONTNEED), 0);
  uffdio_register region{.range = {.start = AddressOf(0), .len = kStackPages * kPageBytes},
                         .mode = UFFDIO_REGISTER_MODE_MISSING,
                         .ioctls = 0};
  ASSERT_EQ(ioctl(faults.get(), UFFDIO_REGISTER, &region), 0);
  alarm(30);  // ends the program where a read waits
  EXPECT_EQ(Copy(100, /*fp=*/7).tail.size(), 2 * kPageBytes / sizeof(uint64_t) - 100);
  alarm(0);
}

}  // namespace
}  // namespace clrsampler
