#include "process/target_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "absl/strings/string_view.h"
#include "os/unique_fd.h"

namespace clrsampler {
namespace {

constexpr size_t kPageBytes = 4096;

TEST(TargetMemoryTest, ReadsAllOrSaysNo) {
  const auto self = static_cast<uint32_t>(getpid());
  static const char text[] = "of this process";
  std::array<std::byte, sizeof text> read;
  ASSERT_TRUE(ReadTargetMemory(self, reinterpret_cast<uint64_t>(text), read));
  EXPECT_EQ(std::memcmp(read.data(), text, sizeof text), 0);
  void* const two = mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(two, MAP_FAILED);
  ASSERT_EQ(munmap(static_cast<char*>(two) + kPageBytes, kPageBytes), 0);
  EXPECT_FALSE(ReadTargetMemory(self, reinterpret_cast<uint64_t>(two) + kPageBytes - 4, read));
  EXPECT_FALSE(ReadTargetMemory(self, uint64_t{1} << 63, read));
  EXPECT_FALSE(ReadTargetMemory(0, reinterpret_cast<uint64_t>(text), read));
  munmap(two, kPageBytes);
}

TEST(TargetMemoryTest, APageThatTheProcessKeepsBackHoldsNobodyUp) {
  const UniqueFd faults(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC)));
  if (!faults.valid()) GTEST_SKIP() << "no right to hold reads of the kernel up";
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  ASSERT_EQ(ioctl(faults.get(), UFFDIO_API, &api), 0);
  void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  uffdio_register region{.range = {.start = reinterpret_cast<uint64_t>(page), .len = kPageBytes},
                         .mode = UFFDIO_REGISTER_MODE_MISSING,
                         .ioctls = 0};
  ASSERT_EQ(ioctl(faults.get(), UFFDIO_REGISTER, &region), 0);
  const auto owner = static_cast<uint32_t>(getpid());
  const auto read = [&] {
    alarm(30);
    std::array<std::byte, 8> bytes;
    _exit(ReadTargetMemory(owner, reinterpret_cast<uint64_t>(page), bytes) ? 0 : 7);
  };
  EXPECT_EXIT(read(), testing::ExitedWithCode(7), "");
  munmap(page, kPageBytes);
}

}  // namespace
}  // namespace clrsampler
