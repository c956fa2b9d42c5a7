#include "pipeline/stop_events.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "os/tape_answer.h"
#include "status/status.h"

namespace clrsampler {
namespace {

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  if (!HangupIsIgnored()) sigaddset(&set, SIGHUP);
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

bool HangupIsIgnored() {
  struct sigaction action {};
  return sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

absl::StatusOr<StopEvents> StopEvents::Create(Tape* tape) {
  StopEvents events;
  events.tape_ = tape;
  const sigset_t set = StopSignals();
  if (sigprocmask(SIG_BLOCK, &set, &events.before_) != 0) return ErrnoError(errno, "sigprocmask");
  events.signals_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!events.signals_.valid()) return ErrnoError(errno, "signalfd");
  events.epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!events.epoll_.valid()) return ErrnoError(errno, "epoll_create1");
  RETURN_IF_ERROR(AddReadable(events.epoll_.get(), events.signals_.get()));
  return events;
}

absl::Status StopEvents::GuardThisThread() {
  main_loop_.Check();
  if (tape_ != nullptr && tape_->plays()) return absl::OkStatus();
  ASSIGN_OR_RETURN(guard_, StopGuard::Start(signals_.get()));
  return absl::OkStatus();
}

StopEvents::~StopEvents() {
  if (!signals_.valid()) return;
  guard_.reset();  // it lends the descriptor
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

absl::Status StopEvents::WatchProcess(uint32_t pid) {
  main_loop_.Check();
  const absl::Status watched = Taped(
      tape_,
      [&]() -> absl::Status {
        UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
        if (!fd.valid()) return ErrnoError(errno, absl::StrCat("process ", pid));
        RETURN_IF_ERROR(AddReadable(epoll_.get(), fd.get()));
        living_.push_back(std::move(fd));
        return absl::OkStatus();
      },
      "watch ", pid);
  RETURN_IF_ERROR(watched);
  ++watched_;
  ++living_count_;
  return absl::OkStatus();
}

absl::Status StopEvents::WatchReadable(int fd) { return AddReadable(epoll_.get(), fd); }

void StopEvents::Wait(int timeout_ms) {
  main_loop_.Check();
  if (tape_ == nullptr) {
    WaitNow(timeout_ms);
    living_count_ = living_.size();
    return;
  }
  const std::vector<uint32_t> now = Taped(
      tape_,
      [&] {
        WaitNow(timeout_ms);
        return std::vector<uint32_t>{static_cast<uint32_t>(living_.size()), static_cast<uint32_t>(signal_),
                                     uint32_t{signal_of_terminal_}};
      },
      "wait");
  if (now.size() != 3) return;
  living_count_ = now[0];
  if (!tape_->plays()) return;
  WaitNow(0);  // whoever plays a tape may stop it
  if (signal_ != 0) return;
  signal_ = static_cast<int>(now[1]);
  signal_of_terminal_ = now[2] == 1;
}

void StopEvents::WaitNow(int timeout_ms) {
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
    // A readable pidfd: the process has exited. Anything else is read by its owner in the coming iteration.
    living_.erase(std::remove_if(living_.begin(), living_.end(), [fd](const UniqueFd& p) { return p.get() == fd; }),
                  living_.end());
  }
}

}  // namespace clrsampler
