#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "os/unique_fd.h"
#include "sandbox/capabilities.h"

namespace clrsampler {
namespace {

// Runs `check` in a process that has entered the sandbox; 0: nothing was wrong.
template <typename Check>
int InSandbox(const SandboxProfile& profile, const Check& check) {
  const pid_t child = fork();
  if (child == 0) _exit(EnterSandbox(profile).ok() ? check() : 100);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SandboxTest, TheAgentKeepsFiveCapabilitiesAtMost) {
  EXPECT_EQ(InSandbox(PrepareAgent({}).profile,
                      [] {
                        int kept = 0;
                        for (int capability = 0; capability <= 40; ++capability) kept += HasCapability(capability);
                        return kept == 0 || kept == 5 ? 0 : kept;
                      }),
            0);
}

TEST(SandboxTest, TheAgentHasThreadsAndStartsNothing) {
  EXPECT_EQ(InSandbox(PrepareAgent({}).profile,
                      [] {
                        std::thread([] {}).join();
                        if (fork() >= 0 || errno != EPERM) return 1;
                        execl("/bin/true", "true", nullptr);
                        if (errno != EPERM) return 2;
                        return UniqueFd(socket(AF_INET, SOCK_STREAM, 0)).valid() ? 3 : 0;
                      }),
            0);
}

TEST(SandboxTest, AnAgentOfRootWritesNothingOfRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "not root";
  char path[] = "/tmp/clrsampler_sandbox_XXXXXX";
  const UniqueFd file(mkstemp(path));
  EXPECT_EQ(InSandbox(PrepareAgent({}).profile,
                      [&] {
                        if (UniqueFd(open(path, O_WRONLY)).valid() || errno != EACCES) return 1;
                        return UniqueFd(open(path, O_RDONLY)).valid() ? 0 : 2;
                      }),
            0);
  unlink(path);
}

TEST(SandboxTest, TheFetcherReadsWhatItNeedsAndTalksToServers) {
  EXPECT_EQ(InSandbox(FetcherProfile(),
                      [] {
                        if (!UniqueFd(open("/etc/passwd", O_RDONLY)).valid()) return 1;
                        if (!UniqueFd(socket(AF_INET, SOCK_STREAM, 0)).valid()) return 2;
                        return UniqueFd(open("/etc/passwd", O_WRONLY)).valid() ? 3 : 0;
                      }),
            0);
}

}  // namespace
}  // namespace clrsampler
