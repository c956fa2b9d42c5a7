#include "pipeline/stop_events.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

absl::Status AddReadable(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) return ErrnoError(errno, "epoll_ctl");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StopEvents> StopEvents::Create() {
  StopEvents events;
  const sigset_t set = StopSignals();
  if (sigprocmask(SIG_BLOCK, &set, &events.before_) != 0) return ErrnoError(errno, "sigprocmask");
  events.signals_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!events.signals_.valid()) return ErrnoError(errno, "signalfd");
  events.epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!events.epoll_.valid()) return ErrnoError(errno, "epoll_create1");
  RETURN_IF_ERROR(AddReadable(events.epoll_.get(), events.signals_.get()));
  return events;
}

StopEvents::~StopEvents() {
  if (!signals_.valid()) return;
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

absl::Status StopEvents::WatchProcess(uint32_t pid) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("process ", pid));
  RETURN_IF_ERROR(AddReadable(epoll_.get(), fd.get()));
  living_.push_back(std::move(fd));
  ++watched_;
  return absl::OkStatus();
}

absl::Status StopEvents::WatchReadable(int fd) { return AddReadable(epoll_.get(), fd); }

void StopEvents::Wait(int timeout_ms) {
  epoll_event ready[16];
  const int count = epoll_wait(epoll_.get(), ready, 16, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const int fd = ready[i].data.fd;
    if (fd == signals_.get()) {
      signalfd_siginfo info{};
      if (read(fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        signal_ = static_cast<int>(info.ssi_signo);
        signal_of_terminal_ = info.ssi_code == SI_KERNEL;
      }
      continue;
    }
    // A readable pidfd: the process has exited. Anything else is read by its owner in the coming turn.
    living_.erase(std::remove_if(living_.begin(), living_.end(), [fd](const UniqueFd& p) { return p.get() == fd; }),
                  living_.end());
  }
}

}  // namespace clrsampler
