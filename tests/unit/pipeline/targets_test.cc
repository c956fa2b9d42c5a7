#include "pipeline/targets.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

class TargetsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "targets_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    proc_ = pattern;
  }
  void TearDown() override { fs::remove_all(proc_); }
  void SetTask(int pid, int tgid) {
    fs::create_directories(proc_ / std::to_string(pid));
    std::ofstream(proc_ / std::to_string(pid) / "status")
        << "Name:\tx\nTgid:\t" << tgid << "\nPid:\t" << pid << "\nPPid:\t1\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n";
  }
  Targets Of(std::vector<uint32_t> pids, std::vector<std::string> command = {}) {
    return Targets(std::move(pids), std::move(command), 99, proc_.string(), nullptr, notices_);
  }
  fs::path proc_;
  Notices notices_;
};

SideBandEvent Event(SideBandKind kind, uint32_t pid) {
  SideBandEvent event;
  event.kind = kind;
  event.pid = event.tid = pid;
  return event;
}

TEST_F(TargetsTest, OnlyProcessesCanBeTargets) {
  SetTask(7, 7);
  SetTask(8, 7);
  EXPECT_TRUE(Of({7}).Check().ok());
  const absl::Status thread = Of({7, 8}).Check();
  EXPECT_EQ(thread.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(thread.message()).find("thread of process 7"), std::string::npos) << thread;
  EXPECT_EQ(Of({9}).Check().code(), absl::StatusCode::kNotFound);
}

TEST_F(TargetsTest, ACommandThatIsNotThereIsAnErrorBeforeAnythingBegins) {
  EXPECT_TRUE(Of({}, {"true"}).Check().ok());
  const absl::Status missing = Of({}, {"no-such-program", "true"}).Check();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound) << missing;
}

TEST_F(TargetsTest, TheWholeHostIsWhatIsMeantWithoutAnyTarget) {
  Targets host = Of({});
  EXPECT_TRUE(host.whole_host());
  EXPECT_TRUE(host.Check().ok());
  EXPECT_TRUE(host.Concerns(Event(SideBandKind::kMmap, 12345)));
  host.Sampled(12345);  // there is no filter that it would have to be added to
  host.Gone(12345);
  EXPECT_FALSE(Of({}, {"true"}).whole_host());
}

TEST_F(TargetsTest, EventsOfStrangersAndTheirChildrenAreNoTargets) {
  Targets targets = Of({7});
  EXPECT_FALSE(targets.Concerns(Event(SideBandKind::kExit, 8)));
  SideBandEvent fork = Event(SideBandKind::kFork, 9);
  fork.parent_pid = 8;
  EXPECT_FALSE(targets.Concerns(fork));
}

}  // namespace
}  // namespace clrsampler
