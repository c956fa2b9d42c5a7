#include "os/own_usage.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>

namespace clrsampler {
namespace {

void Spin(uint64_t ns) {
  const uint64_t end = OwnThreadCpuNs() + ns;
  while (OwnThreadCpuNs() < end) {
  }
}

TEST(OwnUsageTest, MemoryGrowsByWhatIsTouched) {
  const OwnMemory before = ReadOwnMemory();
  ASSERT_GT(before.own_bytes, 0u);
  EXPECT_GE(before.resident_bytes, before.own_bytes);
  constexpr size_t kBytes = 64 << 20;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kBytes);
  EXPECT_GE(ReadOwnMemory().own_bytes, before.own_bytes + kBytes * 9 / 10);
  EXPECT_GE(OwnPeakResidentBytes(), kBytes);
  munmap(memory, kBytes);
}

TEST(OwnUsageTest, CpuTimeIsOfTheThreadAndOfAll) {
  const uint64_t all = OwnCpuMicroseconds(), own = OwnThreadCpuNs();
  std::thread([] { Spin(100'000'000); }).join();
  EXPECT_LT(OwnThreadCpuNs(), own + 90'000'000);
  // A thread that is about to leave another CPU is short of what it ran since the last tick there.
  for (int i = 0; i < 1000 && OwnCpuMicroseconds() < all + 100'000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GE(OwnCpuMicroseconds(), all + 100'000);
}

TEST(OwnUsageTest, OneReadingForMetrics) {
  const OwnUsage usage = ReadOwnUsage();
  EXPECT_GT(usage.resident_bytes, 0u);
  EXPECT_GT(usage.virtual_bytes, usage.resident_bytes);
  EXPECT_GE(usage.open_fds, 3u);
  EXPECT_LE(usage.open_fds, usage.max_fds);
  const double now = static_cast<double>(time(nullptr));
  EXPECT_LE(usage.start_unix_seconds, now + 1);
  EXPECT_GT(usage.start_unix_seconds, now - 24 * 3600);
}

}  // namespace
}  // namespace clrsampler
