#include "symbol_server/fetch_process.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "status/status.h"

namespace clrsampler {
namespace {

constexpr int kSocket = 3;  // of the new process, behind the standard descriptors

void DropCapabilities() {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  syscall(SYS_capset, &header, none);
}

[[noreturn]] void RunChild(int socket, pid_t parent, uint64_t max_file_bytes, const FetchProcess::Main& main) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  prctl(PR_SET_NAME, "clrsampler-get");
  // Ctrl-C goes to all processes of the terminal: what it means is the main loop's business.
  for (const int number : {SIGINT, SIGHUP, SIGTERM, SIGPIPE, SIGXFSZ}) signal(number, SIG_IGN);
  // Standard output is for stacks; only standard error is shared.
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0) _exit(1);
  if (dup2(socket, kSocket) != kSocket) _exit(1);
  syscall(SYS_close_range, kSocket + 1, ~0u, 0);  // Linux 5.9; all descriptors of ours close on exec besides
  const rlimit file_size{max_file_bytes, max_file_bytes};
  setrlimit(RLIMIT_FSIZE, &file_size);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  DropCapabilities();
  main(kSocket);
  _exit(0);
}

}  // namespace

absl::StatusOr<FetchProcess> FetchProcess::Start(uint64_t max_file_bytes, const Main& main) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return ErrnoError(errno, "socketpair");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoError(errno, "fork");
  if (pid == 0) {
    ours.reset();
    RunChild(theirs.release(), parent, max_file_bytes, main);
  }
  return FetchProcess(pid, std::move(ours));
}

FetchProcess::FetchProcess(FetchProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), socket_(std::move(other.socket_)), ended_(other.ended_) {}

bool FetchProcess::Send(absl::string_view datagram) {
  if (ended_ || datagram.size() > kMaxDatagramBytes) return false;
  if (send(socket_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
  if (errno != EAGAIN && errno != EINTR) ended_ = true;
  return false;
}

std::optional<std::string> FetchProcess::Receive() {
  if (ended_) return std::nullopt;
  char buffer[kMaxDatagramBytes];
  const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (got > 0) return std::string(buffer, static_cast<size_t>(got));
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) ended_ = true;
  return std::nullopt;
}

void FetchProcess::End() {
  if (pid_ < 0) return;
  const pid_t pid = std::exchange(pid_, -1);
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace clrsampler
