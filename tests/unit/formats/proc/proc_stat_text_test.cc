#include "formats/proc/proc_stat_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "os/file_io.h"

namespace clrsampler {
namespace {

TEST(ProcStatTextTest, ReadsTotalAndEachCpu) {
  const auto stat =
      ParseProcStat("cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu7 9 9 9 9\nintr 5\n");
  ASSERT_TRUE(stat.ok());
  EXPECT_EQ(stat->total, (CpuTicks{10, 20, 30, 40, 50, 60, 70, 80}));
  EXPECT_EQ(stat->total.busy(), 10u + 20 + 30) << "interrupts on an idle CPU are no work that could be sampled";
  ASSERT_EQ(stat->cpus.size(), 2u);
  EXPECT_EQ(stat->cpus[1].cpu, 7u);
  EXPECT_EQ(stat->cpus[1].ticks.steal, 0u);
}

TEST(ProcStatTextTest, RefusesDamage) {
  EXPECT_FALSE(ParseProcStat("").ok());
  EXPECT_FALSE(ParseProcStat("cpu0 1 2 3 4\n").ok());
  EXPECT_FALSE(ParseProcStat("cpu  1 2 3\n").ok());
  EXPECT_FALSE(ParseProcStat("cpu  1 2 3 99999999999999999999999\n").ok());
}

TEST(ProcStatTextTest, TotalOfThisMachineIsTheSumOfItsCpus) {
  const auto text = ReadWholeFile("/proc/stat", 16 << 20);
  ASSERT_TRUE(text.ok());
  const auto stat = ParseProcStat(*text);
  ASSERT_TRUE(stat.ok());
  EXPECT_EQ(static_cast<long>(stat->cpus.size()), sysconf(_SC_NPROCESSORS_ONLN));
  uint64_t user = 0;
  for (const CpuTicksOf& cpu : stat->cpus) user += cpu.ticks.user;
  // The kernel rounds each line on its own.
  EXPECT_NEAR(static_cast<double>(user), static_cast<double>(stat->total.user),
              static_cast<double>(stat->cpus.size() + 1));
}

}  // namespace
}  // namespace clrsampler
