#include "inprocess/peer.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace clrsampler {
namespace {

constexpr uint64_t kUsualOverflowUser = 65534;
constexpr uint64_t kAllUsers = 0xffffffff;
constexpr size_t kMaxNumbers = 3;

// The first numbers of a file of /proc. How many there are.
size_t ReadNumbers(const char* path, uint64_t (&numbers)[kMaxNumbers]) {
  char text[64];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t bytes = read(file, text, sizeof text);
  close(file);
  size_t count = 0;
  bool in_number = false;
  for (ssize_t i = 0; i < bytes; ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (digit && !in_number) {
      if (count == kMaxNumbers) break;
      numbers[count++] = 0;
    }
    if (digit) numbers[count - 1] = numbers[count - 1] * 10 + static_cast<uint64_t>(text[i] - '0');
    in_number = digit;
  }
  return count;
}

// All users that a user namespace does not map have one number there. So it may be anybody's.
bool MayBeAnybody(uid_t user) {
  uint64_t overflow[kMaxNumbers];
  if (ReadNumbers("/proc/sys/kernel/overflowuid", overflow) == 0) overflow[0] = kUsualOverflowUser;
  if (user != overflow[0]) return false;
  uint64_t map[kMaxNumbers];
  return ReadNumbers("/proc/self/uid_map", map) != kMaxNumbers || map[2] != kAllUsers;
}

}  // namespace

bool IsOfRootOrOurUser(int connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         (peer.uid == 0 || peer.uid == geteuid()) && !MayBeAnybody(peer.uid);
}

}  // namespace clrsampler
