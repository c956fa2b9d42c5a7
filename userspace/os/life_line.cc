#include "os/life_line.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

namespace clrsampler {

bool EndWithPipe(int read_end) {
  if (fcntl(read_end, F_SETOWN, getpid()) != 0 || fcntl(read_end, F_SETSIG, SIGKILL) != 0 ||
      fcntl(read_end, F_SETFL, O_ASYNC | O_NONBLOCK) != 0) {
    return false;
  }
  pollfd closed{read_end, POLLIN, 0};  // before it could be told
  return poll(&closed, 1, 0) == 0;
}

}  // namespace clrsampler
