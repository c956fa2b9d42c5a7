#include "pipeline/target_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "status/status.h"

namespace clrsampler {
namespace {

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> Pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  return std::make_pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

absl::Status CannotRun(int error, absl::string_view name) {
  return WithHint(ErrnoError(error, absl::StrCat("cannot run ", name)),
                  "give a program and its arguments behind --; the program is looked up in PATH");
}

// 0, or why exec would not run it.
int ErrorOfProgram(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return EACCES;
  return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

// In the forked child: async-signal-safe calls only.
[[noreturn]] void WaitAndExec(int go, int result, char* const* arguments, const ResourceLimits& limits) {
  char byte;
  ssize_t got;
  do {
    got = read(go, &byte, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 1) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);  // ignored by us, and exec would hand that on
    setrlimit(RLIMIT_NOFILE, &limits.open_files);
    setrlimit(RLIMIT_MEMLOCK, &limits.locked_memory);
    execvp(arguments[0], arguments);
    const int error = errno;
    (void)!write(result, &error, sizeof error);
  }
  _exit(127);
}

}  // namespace

ResourceLimits ResourceLimits::Current() {
  ResourceLimits limits{};
  getrlimit(RLIMIT_NOFILE, &limits.open_files);
  getrlimit(RLIMIT_MEMLOCK, &limits.locked_memory);
  return limits;
}

// As execvp looks it up.
absl::Status TargetCommand::Check(const std::vector<std::string>& command) {
  const std::string& name = command[0];
  if (name.empty() || absl::StrContains(name, '/')) {
    const int error = ErrorOfProgram(name);
    return error == 0 ? absl::OkStatus() : CannotRun(error, name);
  }
  const char* const path = getenv("PATH");
  int error = ENOENT;
  for (const absl::string_view folder : absl::StrSplit(path != nullptr ? path : "/bin:/usr/bin", ':')) {
    const int here = ErrorOfProgram(folder.empty() ? name : absl::StrCat(folder, "/", name));
    if (here == 0) return absl::OkStatus();
    if (here == EACCES) error = EACCES;
  }
  return CannotRun(error, name);
}

absl::StatusOr<TargetCommand> TargetCommand::Start(const std::vector<std::string>& command,
                                                   const ResourceLimits& limits) {
  auto go = Pipe();
  if (!go.ok()) return go.status();
  auto result = Pipe();
  if (!result.ok()) return result.status();
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  const pid_t pid = fork();
  if (pid < 0) return ErrnoError(errno, "fork");
  if (pid == 0) {
    close(go->second.get());  // so that the end of this program is the end of the pipe
    WaitAndExec(go->first.get(), result->second.get(), arguments.data(), limits);
  }
  TargetCommand target;
  target.pid_ = pid;
  target.name_ = command[0];
  target.go_ = std::move(go->second);
  target.result_ = std::move(result->first);
  return target;
}

TargetCommand::~TargetCommand() {
  if (!go_.valid() || released_) return;  // moved from, or running
  go_.reset();
  waitpid(pid_, nullptr, 0);
}

absl::Status TargetCommand::Release() {
  released_ = true;
  if (write(go_.get(), "x", 1) != 1) return ErrnoError(errno, "the command's pipe");
  go_.reset();
  int error = 0;
  ssize_t got;
  do {
    got = read(result_.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  result_.reset();
  if (got != static_cast<ssize_t>(sizeof error)) return absl::OkStatus();
  waitpid(pid_, nullptr, 0);
  exit_status_ = 127;
  return CannotRun(error, name_);
}

bool TargetCommand::PollExited() {
  if (exit_status_.has_value()) return true;
  int status = 0;
  rusage usage{};
  const pid_t got = wait4(pid_, &status, WNOHANG, &usage);
  if (got != pid_) return false;
  exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const auto ns = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_usec) * 1'000;
  };
  cpu_ns_ = ns(usage.ru_utime) + ns(usage.ru_stime);
  return true;
}

void TargetCommand::Signal(int signal_number) const {
  if (released_ && !exit_status_.has_value()) kill(pid_, signal_number);
}

}  // namespace clrsampler
