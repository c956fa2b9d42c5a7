#include "os/service_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "os/unique_fd.h"
#include "status/status.h"

namespace clrsampler {

absl::Status NotifyServiceManager(absl::string_view state) {
  const char* path = getenv("NOTIFY_SOCKET");
  if (path == nullptr || *path == '\0') return absl::OkStatus();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = strlen(path);
  if ((path[0] != '/' && path[0] != '@') || length >= sizeof address.sun_path) {
    return absl::InvalidArgumentError("NOTIFY_SOCKET is no path of a socket");
  }
  memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // in the abstract namespace
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return ErrnoError(errno, "socket");
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  if (sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
             size) < 0) {
    return ErrnoError(errno, "NOTIFY_SOCKET");
  }
  return absl::OkStatus();
}

std::optional<uint64_t> WatchdogNs() {
  const char* text = getenv("WATCHDOG_USEC");
  uint64_t us = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &us) || us == 0 || us > UINT64_MAX / 1000) return std::nullopt;
  if (const char* pid = getenv("WATCHDOG_PID"); pid != nullptr) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(pid, &number) || number != getpid()) return std::nullopt;  // meant for another process
  }
  return us * 1000;
}

}  // namespace clrsampler
