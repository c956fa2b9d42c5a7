#include "os/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

namespace clrsampler {

bool HoldStandardDescriptors() {
  // Started programs inherit these: they would make the same mistake.
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_RDWR};
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    // The lowest free number is taken, and those below are in use.
    if (fcntl(number, F_GETFD) < 0 && open("/dev/null", kModes[number]) != number) return false;
  }
  return true;
}

bool HasStandardOutput() {
  const int flags = fcntl(STDOUT_FILENO, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

}  // namespace clrsampler
