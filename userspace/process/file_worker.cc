#include "process/file_worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "os/fd_message.h"
#include "os/file_io.h"
#include "os/life_line.h"
#include "process/file_question.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr int kSocket = 3;  // of the new process, behind the standard descriptors

// Content that does not fit into a datagram goes as a memfd. Maps of a process may have megabytes.
constexpr size_t kMaxInlineBytes = 128 * 1024;

// Keeps `socket` and nothing else of the program that it was forked from: neither locks nor listening sockets.
void KeepOnly(int socket) {
  if (socket != kSocket && dup2(socket, kSocket) != kSocket) _exit(1);
  syscall(SYS_close_range, kSocket + 1, ~0u, 0);  // Linux 5.9
}

void Prepare(pid_t parent, const char* name) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  prctl(PR_SET_NAME, name);
}

[[noreturn]] void RunWorker() {
  const std::optional<FileMessage> life = ReceiveFileMessage(kSocket);
  if (!life || !EndWithPipe(life->fd.get())) _exit(1);
  while (true) {
    std::optional<FileMessage> message = ReceiveFileMessage(kSocket);
    if (!message) _exit(0);
    const std::optional<FileQuestion> question = ParseFileQuestion(message->bytes);
    if (!question) _exit(1);
    FileAnswer answer = AnswerFileQuestion(*question, message->fd.get());
    message->fd.reset();
    UniqueFd text;
    if (answer.text.size() > kMaxInlineBytes) {
      text = UniqueFd(memfd_create("clrsampler-text", MFD_CLOEXEC));
      if (!text.valid() || !WriteAll(text.get(), answer.text).ok()) _exit(1);
      answer.text.clear();
    }
    if (!SendFileMessage(kSocket, FileAnswerBytes(answer), text.valid() ? text.get() : answer.fd.get())) _exit(0);
  }
}

[[noreturn]] void RunNursery() {
  signal(SIGCHLD, SIG_IGN);  // workers that end leave nothing behind
  while (true) {
    std::optional<FileMessage> message = ReceiveFileMessage(kSocket);
    NurseryReply reply;
    if (!message || !message->fd.valid() || message->bytes.size() != sizeof reply.number) _exit(0);
    std::memcpy(&reply.number, message->bytes.data(), sizeof reply.number);
    const pid_t self = getpid();
    reply.pid = fork();
    if (reply.pid == 0) {
      Prepare(self, "clrsampler-file");
      KeepOnly(message->fd.release());
      RunWorker();
    }
    const absl::string_view bytes(reinterpret_cast<const char*>(&reply), sizeof reply);
    if (!SendFileMessage(kSocket, bytes, -1)) _exit(0);
  }
}

}  // namespace

bool SendFileMessage(int socket, absl::string_view bytes, int fd) {
  ssize_t sent;
  do {
    sent = SendFdMessage(socket, bytes, fd, 0);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

std::optional<FileMessage> ReceiveFileMessage(int socket) {
  static char buffer[kMaxFileMessageBytes];
  std::optional<FdMessage> message = ReceiveFdMessage(socket, buffer);
  if (!message || message->truncated) return std::nullopt;
  return FileMessage{std::move(message->bytes), std::move(message->fd)};
}

absl::StatusOr<std::pair<pid_t, UniqueFd>> StartFileNursery(EnterWorkerSandbox enter_sandbox) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return ErrnoError(errno, "socketpair");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoError(errno, "fork");
  if (pid == 0) {
    // Ctrl-C goes to all processes of the terminal. The main loop decides what it means.
    for (const int number : {SIGINT, SIGHUP, SIGTERM, SIGPIPE}) signal(number, SIG_IGN);
    // Standard output is for stacks, and a reader of it waits until all that have it open are gone.
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      if (null < 0 || dup2(null, standard) < 0) _exit(1);
    }
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    KeepOnly(theirs.release());
    // A change of the user takes the wish to end with the parent back, so that comes later.
    if (!enter_sandbox().ok()) _exit(1);
    Prepare(parent, "clrsampler-file");
    RunNursery();
  }
  return std::make_pair(pid, std::move(ours));
}

}  // namespace clrsampler
