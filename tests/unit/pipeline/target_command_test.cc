#include "pipeline/target_command.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "status/status.h"

namespace clrsampler {
namespace {

bool WaitExited(TargetCommand& command) {
  for (int i = 0; i < 6000 && !command.PollExited(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return command.PollExited();
}

// The state of a process: `S` once it waits.
char StateOf(uint32_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(stat), {}};
  const size_t name = text.rfind(") ");
  return name == std::string::npos ? '?' : text[name + 2];
}

TEST(TargetCommandTest, NothingRunsBeforeRelease) {
  std::string folder = std::filesystem::temp_directory_path() / "target_command_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::filesystem::path mark = folder + "/mark";
  auto command = TargetCommand::Start({"touch", mark.string()});
  ASSERT_TRUE(command.ok()) << command.status();
  while (StateOf(command->pid()) == 'R') std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(StateOf(command->pid()), 'S');
  EXPECT_EQ(std::filesystem::read_symlink("/proc/" + std::to_string(command->pid()) + "/exe"),
            std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_FALSE(std::filesystem::exists(mark));
  ASSERT_TRUE(command->Release().ok());
  ASSERT_TRUE(WaitExited(*command));
  EXPECT_EQ(command->exit_status(), 0);
  EXPECT_TRUE(std::filesystem::exists(mark));
  std::filesystem::remove_all(folder);
}

TEST(TargetCommandTest, AMissingProgramIsAnErrorWithAHint) {
  auto command = TargetCommand::Start({"/no/such/program"});
  ASSERT_TRUE(command.ok());
  const absl::Status released = command->Release();
  EXPECT_EQ(released.code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(HintOf(released).empty());
}

TEST(TargetCommandTest, AProgramThatCanNotBeRunIsToldBeforeItIsStarted) {
  std::string folder = std::filesystem::temp_directory_path() / "target_command_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::filesystem::create_directory(folder + "/folder");
  for (const char* name : {"script", "text"}) std::ofstream(folder + "/" + name) << "#!/bin/sh\n";
  std::filesystem::permissions(folder + "/script", std::filesystem::perms::owner_all);
  const std::string path = getenv("PATH");
  setenv("PATH", (folder + "/absent:" + folder).c_str(), 1);
  for (const std::string& where : {std::string(), folder + "/"}) {
    EXPECT_TRUE(TargetCommand::Check({where + "script"}).ok()) << where;
    for (const char* name : {"text", "folder"}) {
      EXPECT_TRUE(absl::IsPermissionDenied(TargetCommand::Check({where + name}))) << where << name;
    }
    const absl::Status missing = TargetCommand::Check({where + "other", "script"});
    EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
    auto command = TargetCommand::Start({where + "other"});
    ASSERT_TRUE(command.ok());
    EXPECT_EQ(command->Release(), missing) << "exec says the same";
  }
  EXPECT_TRUE(absl::IsNotFound(TargetCommand::Check({""})));
  setenv("PATH", path.c_str(), 1);
  std::filesystem::remove_all(folder);
}

TEST(TargetCommandTest, AChildThatWasNeverReleasedEndsWithItsOwner) {
  pid_t pid;
  {
    auto command = TargetCommand::Start({"sleep", "100"});
    ASSERT_TRUE(command.ok());
    pid = static_cast<pid_t>(command->pid());
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(TargetCommandTest, TheCommandStartsWithTheSignalsAndLimitsOfItsUser) {
  const ResourceLimits limits = ResourceLimits::Current();
  ResourceLimits raised = limits;
  raised.open_files.rlim_cur = limits.open_files.rlim_cur - 1;
  signal(SIGPIPE, SIG_IGN);
  setrlimit(RLIMIT_NOFILE, &raised.open_files);
  auto command = TargetCommand::Start(
      {"sh", "-c", "test $(ulimit -n) = " + std::to_string(limits.open_files.rlim_cur) + " && kill -PIPE $$"}, limits);
  ASSERT_TRUE(command.ok());
  EXPECT_TRUE(command->Release().ok());
  EXPECT_TRUE(WaitExited(*command));
  EXPECT_EQ(command->exit_status(), 128 + SIGPIPE);
  setrlimit(RLIMIT_NOFILE, &limits.open_files);
  signal(SIGPIPE, SIG_DFL);
}

TEST(TargetCommandTest, ASignalReachesTheCommand) {
  auto command = TargetCommand::Start({"sleep", "100"});
  ASSERT_TRUE(command.ok());
  ASSERT_TRUE(command->Release().ok());
  command->Signal(SIGTERM);
  ASSERT_TRUE(WaitExited(*command));
  EXPECT_EQ(command->exit_status(), 128 + SIGTERM);
}

}  // namespace
}  // namespace clrsampler
