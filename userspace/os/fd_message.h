// Datagrams over Unix sockets that may bring an open file along (unix(7), SCM_RIGHTS).
#ifndef CLRSAMPLER_OS_FD_MESSAGE_H_
#define CLRSAMPLER_OS_FD_MESSAGE_H_

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "os/unique_fd.h"

namespace clrsampler {

struct FdMessage {
  std::string bytes;
  UniqueFd fd;             // not valid: none came along
  bool truncated = false;  // the buffer was too small, or more files came than one
};

// One sendmsg with MSG_NOSIGNAL and `flags`; its result, with errno. `fd` < 0: none goes along.
ssize_t SendFdMessage(int socket, absl::string_view bytes, int fd, int flags);
// Waits for one. nullopt: the other side is gone, or errno says why. Bytes beyond `buffer` are lost.
std::optional<FdMessage> ReceiveFdMessage(int socket, std::span<char> buffer);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_FD_MESSAGE_H_
