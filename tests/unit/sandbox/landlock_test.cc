#include "sandbox/landlock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/unique_fd.h"

namespace clrsampler {
namespace {

// In a process of its own, which ends with the answer of `check`.
int InChild(int (*check)(const char*), const char* path) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const absl::Status restricted = RestrictToReading({"/usr", "/not/there"});
    _exit(absl::IsUnimplemented(restricted) ? 100 : !restricted.ok() ? 101 : check(path));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(LandlockTest, WhatIsNotNamedIsClosed) {
  char path[] = "/tmp/clrsampler_landlock_XXXXXX";
  const UniqueFd file(mkstemp(path));
  const int result = InChild(
      [](const char* closed) {
        int failed = 0;
        failed |= UniqueFd(open("/usr", O_RDONLY)).valid() ? 0 : 1;
        failed |= UniqueFd(open(closed, O_RDONLY)).valid() ? 2 : 0;
        failed |= UniqueFd(open(closed, O_WRONLY)).valid() ? 4 : 0;
        failed |= unlink(closed) == 0 ? 8 : 0;
        execl("/usr/bin/true", "true", nullptr);
        return failed;
      },
      path);
  unlink(path);
  if (result == 100) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(result, 0) << "bits: /usr, read, write, unlink";
}

}  // namespace
}  // namespace clrsampler
