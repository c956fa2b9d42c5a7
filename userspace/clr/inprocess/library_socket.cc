#include "clr/inprocess/library_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "os/without_umask.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<LibrarySocket> LibrarySocket::Listen(std::string path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat(path, " is too long for a socket")),
                    "choose a shorter one");
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // To connect takes the right to write. The kernel tells which process and user it was.
  std::optional<WithoutUmask> for_everybody;
  if (geteuid() == 0) for_everybody.emplace();
  if (!listener.valid() || bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return WithHint(ErrnoError(errno, path), "choose a path where nothing is yet");
  }
  for_everybody.reset();
  LibrarySocket made(std::move(path), std::move(listener));
  if (listen(made.listener_.get(), 1) != 0) return ErrnoError(errno, made.path_);
  return made;
}

void LibrarySocket::Close() {
  if (!listener_.valid()) return;
  // The path goes first: it is still ours.
  unlink(path_.c_str());
  listener_.reset();
}

}  // namespace clrsampler
