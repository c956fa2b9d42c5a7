#include "pipeline/stop_guard.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace clrsampler {
namespace {

// A descriptor that becomes readable with SIGTERM, which ends nothing meanwhile.
class WaitingSignal {
 public:
  WaitingSignal() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    fd_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC));
  }
  ~WaitingSignal() {
    signalfd_siginfo info;
    sigset_t waiting;
    if (sigpending(&waiting) == 0 && sigismember(&waiting, SIGTERM) == 1) (void)!read(fd_.get(), &info, sizeof info);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  int fd() const { return fd_.get(); }

 private:
  sigset_t before_;
  UniqueFd fd_;
};

// Longer than the guard needs to end a program that hangs.
constexpr auto kLong = std::chrono::milliseconds(3 * StopGuard::kLooks * StopGuard::kLookMs / 2);

TEST(StopGuardTest, WorkThatTakesLongIsNotEnded) {
  WaitingSignal signal;
  const auto guard = StopGuard::Start(signal.fd());
  ASSERT_TRUE(guard.ok()) << guard.status();
  kill(getpid(), SIGTERM);
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(StopGuardTest, ASleepThatASignalWouldEndIsNoHang) {
  WaitingSignal signal;
  const auto guard = StopGuard::Start(signal.fd());
  ASSERT_TRUE(guard.ok()) << guard.status();
  kill(getpid(), SIGTERM);
  std::this_thread::sleep_for(kLong);
}

// A process that has called vfork waits in state D until its child is gone.
void HangUntil(bool asked_to_stop) {
  WaitingSignal signal;
  const auto guard = StopGuard::Start(signal.fd());
  if (!guard.ok()) _exit(1);
  if (asked_to_stop) kill(getpid(), SIGTERM);
  const pid_t child = vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (child == 0) {
    execl("/bin/sleep", "sleep", "0", nullptr);
    _exit(1);
  }
  waitpid(child, nullptr, 0);
  _exit(7);
}

TEST(StopGuardDeathTest, AHangThatNobodyWantsToEndGoesOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(HangUntil(false), testing::ExitedWithCode(7), "");
}

// The child of vfork stops before its exec, so that the parent hangs for good.
void HangForGood() {
  WaitingSignal signal;
  const auto guard = StopGuard::Start(signal.fd());
  if (!guard.ok()) _exit(1);
  kill(getpid(), SIGTERM);
  if (vfork() == 0) {  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) {
    }
  }
  _exit(7);
}

TEST(StopGuardDeathTest, AHangEndsTheProgramThatWasAskedToStop) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(HangForGood(), testing::ExitedWithCode(128 + SIGTERM), "hangs in the kernel");
}

}  // namespace
}  // namespace clrsampler
