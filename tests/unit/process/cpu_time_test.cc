#include "process/cpu_time.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

uint64_t OwnCpuNs() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

TEST(CpuTimeTest, OfAProcessIsWhatItsOwnClockSays) {
  const uint64_t before = OwnCpuNs();
  const std::optional<uint64_t> read = ProcessCpuNs(static_cast<uint32_t>(getpid()));
  const uint64_t after = OwnCpuNs();
  ASSERT_TRUE(read.has_value());
  EXPECT_LE(before, *read);
  EXPECT_LE(*read, after);
}

// Its end is still counted until its parent has waited for it; then the number is nobody's.
TEST(CpuTimeTest, OfAProcessThatHasEndedIsThereUntilItIsWaitedFor) {
  constexpr uint64_t kUsed = 20'000'000;
  const pid_t child = fork();
  if (child == 0) {
    while (OwnCpuNs() < kUsed) {
    }
    _exit(0);
  }
  ASSERT_GT(child, 0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_GE(ProcessCpuNs(static_cast<uint32_t>(child)).value_or(0), kUsed);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(ProcessCpuNs(static_cast<uint32_t>(child)), std::nullopt);
}

TEST(CpuTimeTest, OfTheHostIsThatOfTasksAndWhatWasTaken) {
  ASSERT_EQ(sysconf(_SC_CLK_TCK), 100);
  std::string pattern = (fs::temp_directory_path() / "cpu_time_XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  std::ofstream(fs::path(pattern) / "stat") << "cpu  30 0 12 500 0 50 60 7 0 0\n"
                                               "cpu0 10 0 0 250 0 50 60 3 0 0\n"
                                               "cpu2 20 0 12 250 0 0 0 4 0 0\n";
  const absl::StatusOr<HostCpuTime> time = ReadHostCpuTime(pattern);
  fs::remove_all(pattern);
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_EQ(time->busy_ns, 420'000'000u);
  EXPECT_EQ(time->stolen_ns, 70'000'000u);
  EXPECT_EQ(time->cpu_busy_ns, (std::vector<uint64_t>{100'000'000, 0, 320'000'000}));
  EXPECT_FALSE(ReadHostCpuTime(pattern).ok());
}

}  // namespace
}  // namespace clrsampler
