// On a child, which every user may stop.
#include "capture/thread_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "os/file_io.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kPatienceMs = 20'000;

// A process of one thread that waits for a child of its own, as vfork(2) does: nothing but its death ends that wait.
// The child waits until it is let go.
class WaitsInVfork {
 public:
  WaitsInVfork() {
    int begun[2], let_go[2], over[2];
    if (pipe(begun) != 0 || pipe(let_go) != 0 || pipe(over) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(let_go[1]);
      Run(begun[1], let_go[0], over[1]);
    }
    close(begun[1]);
    close(let_go[0]);
    close(over[1]);
    let_go_ = let_go[1];
    over_ = over[0];
    char byte;
    ready_ = read(begun[0], &byte, 1) == 1;
    close(begun[0]);
  }
  ~WaitsInVfork() {
    LetGo();
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(over_);
  }
  WaitsInVfork(const WaitsInVfork&) = delete;
  WaitsInVfork& operator=(const WaitsInVfork&) = delete;

  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  bool ready() const { return ready_; }
  void LetGo() {
    if (let_go_ >= 0) close(let_go_);
    let_go_ = -1;
  }
  // Whether it has come to the end of its wait.
  bool GoesOn() const {
    pollfd over{.fd = over_, .events = POLLIN, .revents = 0};
    return poll(&over, 1, kPatienceMs) == 1 && (over.revents & POLLIN) != 0;
  }

 private:
  [[noreturn]] static void Run(int begun, int let_go, int over) {
    char byte = 1;
    if (vfork() == 0) {  // NOLINT(clang-analyzer-security.insecureAPI.vfork): this wait is what the test is about
      if (write(begun, &byte, 1) != 1 || read(let_go, &byte, 1) != 0) _exit(1);
      _exit(0);
    }
    if (write(over, &byte, 1) != 1) _exit(1);
    for (;;) pause();
  }

  pid_t pid_ = -1;
  int let_go_ = -1, over_ = -1;
  bool ready_ = false;
};

TEST(ThreadDumpTest, AThreadThatDoesNotStopIsTracedNoMore) {
  WaitsInVfork target;
  ASSERT_TRUE(target.ready());
  ThreadDumpOptions options;
  options.patience_ns = 20'000'000;
  for (int i = 0; i < 2; ++i) {  // the second dump does not meet the first one as another tracer
    const absl::StatusOr<std::vector<DumpedThread>> dumped = DumpThreads(target.pid(), options);
    ASSERT_TRUE(dumped.ok()) << dumped.status();
    ASSERT_THAT(*dumped, SizeIs(1));
    EXPECT_THAT((*dumped)[0].trouble, HasSubstr("does not stop"));
  }
  target.LetGo();
  EXPECT_TRUE(target.GoesOn()) << "it has stopped for a tracer that does not look at it any more";
}

TEST(ThreadDumpTest, TheCallersThreadLooksAtOneThatStands) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  int looks = 0;
  ThreadDumpOptions options;
  options.patience_ns = kPatienceMs * uint64_t{1'000'000};
  options.look = [&, caller = std::this_thread::get_id()](DumpedThread& thread) {
    ++looks;
    EXPECT_EQ(std::this_thread::get_id(), caller);
    const absl::StatusOr<std::string> status = ReadWholeFile(absl::StrCat("/proc/", thread.tid, "/status"), 1 << 16);
    ASSERT_TRUE(status.ok());
    EXPECT_THAT(*status, HasSubstr("State:\tt"));
  };
  const absl::StatusOr<std::vector<DumpedThread>> dumped = DumpThreads(static_cast<uint32_t>(child), options);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(dumped.ok()) << dumped.status();
  ASSERT_THAT(*dumped, SizeIs(1));
  EXPECT_THAT((*dumped)[0].trouble, IsEmpty());
  EXPECT_EQ(looks, 1);
}

}  // namespace
}  // namespace clrsampler
