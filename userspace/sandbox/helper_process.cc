#include "sandbox/helper_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "os/fd_message.h"
#include "os/life_line.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Descriptors of the new process, behind the standard ones.
constexpr int kSocket = 3;
constexpr int kLife = 4;

// Low numbers, and nothing else is open.
bool TakeDescriptors(int socket, int life) {
  const int high_socket = fcntl(socket, F_DUPFD, 10);
  const int high_life = fcntl(life, F_DUPFD, 10);
  // Standard output is for stacks; only standard error is shared.
  const int null = open("/dev/null", O_RDWR);
  if (high_socket < 0 || high_life < 0 || null < 0) return false;
  if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0) return false;
  if (dup2(high_socket, kSocket) != kSocket || dup2(high_life, kLife) != kLife) return false;
  return syscall(SYS_close_range, kLife + 1, ~0u, 0) == 0;  // Linux 5.9
}

[[noreturn]] void RunChild(int socket, int life, const HelperOptions& options, const HelperProcess::Main& main) {
  prctl(PR_SET_NAME, options.name);
  // Ctrl-C goes to all processes of the terminal. The main loop decides what it means.
  for (const int number : {SIGINT, SIGHUP, SIGTERM, SIGPIPE, SIGXFSZ}) signal(number, SIG_IGN);
  if (!TakeDescriptors(socket, life)) _exit(1);
  const rlimit file_size{options.max_file_bytes, options.max_file_bytes};
  setrlimit(RLIMIT_FSIZE, &file_size);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  // The agent reports the parts of the sandbox that the kernel lacks. It has the same kernel.
  if (options.prepare) options.prepare();
  if (!EnterSandbox(options.profile).ok() || !EndWithPipe(kLife)) _exit(1);
  main(kSocket);
  _exit(0);
}

}  // namespace

absl::StatusOr<HelperProcess> HelperProcess::Start(const HelperOptions& options, const Main& main) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return ErrnoError(errno, "socketpair");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  UniqueFd life_read(ends[0]), life_write(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return ErrnoError(errno, "fork");
  if (pid == 0) {
    ours.reset();
    life_write.reset();
    RunChild(theirs.release(), life_read.release(), options, main);
  }
  return HelperProcess(pid, std::move(ours), std::move(life_write));
}

HelperProcess::HelperProcess(HelperProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(std::move(other.socket_)),
      life_(std::move(other.life_)),
      ended_(other.ended_) {}

bool HelperProcess::Send(absl::string_view datagram, int file) {
  if (ended_ || datagram.size() > kMaxDatagramBytes) return false;
  if (SendFdMessage(socket_.get(), datagram, file, MSG_DONTWAIT) >= 0) return true;
  if (errno != EAGAIN && errno != EINTR) ended_ = true;
  return false;
}

std::optional<HelperProcess::Message> HelperProcess::Wait(int socket) {
  char buffer[kMaxDatagramBytes];
  std::optional<FdMessage> message = ReceiveFdMessage(socket, buffer);
  if (!message) return std::nullopt;
  return Message{std::move(message->bytes), std::move(message->fd)};
}

std::optional<std::string> HelperProcess::Receive() {
  if (ended_) return std::nullopt;
  char buffer[kMaxDatagramBytes];
  const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (got > 0) return std::string(buffer, static_cast<size_t>(got));
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) ended_ = true;
  return std::nullopt;
}

void HelperProcess::End() {
  if (pid_ < 0) return;
  const pid_t pid = std::exchange(pid_, -1);
  life_.reset();
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace clrsampler
