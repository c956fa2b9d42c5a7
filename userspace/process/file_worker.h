// The processes behind a FileBroker: the nursery, and the workers that it makes.
#ifndef CLRSAMPLER_PROCESS_FILE_WORKER_H_
#define CLRSAMPLER_PROCESS_FILE_WORKER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/unique_fd.h"

namespace clrsampler {

// A datagram, with one descriptor or none.
struct FileMessage {
  std::string bytes;
  UniqueFd fd;
};
inline constexpr size_t kMaxFileMessageBytes = 160 * 1024;

bool SendFileMessage(int socket, absl::string_view bytes, int fd);
// Waits where the socket waits. nullopt: the other side is gone, or nothing is there (errno EAGAIN).
std::optional<FileMessage> ReceiveFileMessage(int socket);

// Gives up, in the new process and for good, what workers do not need.
using EnterWorkerSandbox = absl::FunctionRef<absl::Status()>;

// The nursery's answer about a worker that was asked for under this number.
struct NurseryReply {
  uint64_t number = 0;
  int64_t pid = -1;  // none could be made
};

// Forks the nursery: it has one end of a pair of datagram sockets and no other descriptor of ours. To a message of a
// number (8 bytes) with a socket it answers with a NurseryReply. The first message on that socket brings the read end
// of a pipe, and the worker ends when the pipe is closed (os/life_line.h); then it answers questions. The nursery
// touches no file. Both end with this program, unless the kernel does not let them.
absl::StatusOr<std::pair<pid_t, UniqueFd>> StartFileNursery(EnterWorkerSandbox enter_sandbox);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_FILE_WORKER_H_
