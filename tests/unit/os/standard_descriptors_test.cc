#include "os/standard_descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace clrsampler {
namespace {

// The exit status of a process in which these descriptors were closed before `check`, which returns what is wrong.
int Without(std::initializer_list<int> closed, int (*check)()) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : closed) close(number);
    _exit(HoldStandardDescriptors() ? check() : 99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardDescriptorsTest, NoFileTakesThePlaceOfOneThatIsClosed) {
  EXPECT_EQ(Without({0, 2}, [] { return open("/dev/zero", O_RDONLY) > 2 && HasStandardOutput() ? 0 : 1; }), 0);
  EXPECT_EQ(Without({0, 1, 2}, [] { return open("/dev/zero", O_RDONLY) > 2 && !HasStandardOutput() ? 0 : 1; }), 0);
}

TEST(StandardDescriptorsTest, UseOfOneThatWasClosedStaysAnError) {
  EXPECT_EQ(Without({0, 1, 2},
                    [] {
                      char byte = 0;
                      if (read(STDIN_FILENO, &byte, 1) >= 0 || errno != EBADF) return 1;
                      if (write(STDOUT_FILENO, &byte, 1) >= 0 || errno != EBADF) return 2;
                      return write(STDERR_FILENO, &byte, 1) == 1 ? 0 : 3;
                    }),
            0);
}

}  // namespace
}  // namespace clrsampler
