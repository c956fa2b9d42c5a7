// On a child, which every user may stop.
#include "pipeline/thread_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "absl/strings/match.h"

namespace clrsampler {

__attribute__((noinline)) void WaitHereForever(int fd) {
  char byte = 1;
  for (;;) {
    [[maybe_unused]] const ssize_t written = write(fd, &byte, 1);
    pause();
    asm volatile("" ::: "memory");
  }
}

namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A process of two threads, both within WaitHereForever.
class TwoThreads {
 public:
  TwoThreads() {
    int ends[2];
    if (pipe(ends) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::thread other([&] {
        prctl(PR_SET_NAME, "other");
        WaitHereForever(ends[1]);
      });
      WaitHereForever(ends[1]);
      _exit(0);
    }
    close(ends[1]);
    char byte;
    for (int i = 0; i < 2; ++i) ready_ += read(ends[0], &byte, 1) == 1;
    close(ends[0]);
  }
  ~TwoThreads() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  bool ready() const { return ready_ == 2; }

 private:
  pid_t pid_ = -1;
  int ready_ = 0;
};

TEST(ThreadStacksTest, EachThreadHasItsStackAndItsName) {
  const TwoThreads target;
  ASSERT_TRUE(target.ready());
  absl::StatusOr<ThreadStacks> stacks = TakeThreadStacks(target.pid(), NameStyle::kShort);
  // A thread that gets no CPU for a second does not stop in time either.
  const auto is_late = [](const ThreadStack& thread) { return absl::StrContains(thread.trouble, "does not stop"); };
  for (int i = 0; i < 20 && stacks.ok() && std::ranges::any_of(stacks->threads, is_late); ++i) {
    stacks = TakeThreadStacks(target.pid(), NameStyle::kShort);
  }
  ASSERT_TRUE(stacks.ok()) << stacks.status();
  ASSERT_THAT(stacks->threads, SizeIs(2));
  EXPECT_THAT(stacks->locks_trouble, HasSubstr("no memory of a .NET runtime is read"));
  EXPECT_EQ(stacks->threads[0].tid, target.pid());
  EXPECT_EQ(stacks->threads[1].comm, "other");
  for (const ThreadStack& thread : stacks->threads) {
    EXPECT_THAT(thread.trouble, IsEmpty());
    std::vector<std::string> names;
    for (const ThreadFrame& frame : thread.frames) names.push_back(frame.frame.text);
    EXPECT_THAT(names, Contains(HasSubstr("WaitHereForever"))) << thread.comm;
    EXPECT_EQ(thread.end, StackEnd::kComplete) << thread.comm;
  }
}

TEST(ThreadStacksTest, TheProcessGoesOn) {
  const TwoThreads target;
  ASSERT_TRUE(target.ready());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(TakeThreadStacks(target.pid(), NameStyle::kShort).ok());
  int status = 0;
  EXPECT_EQ(waitpid(static_cast<pid_t>(target.pid()), &status, WNOHANG), 0);
}

TEST(ThreadStacksTest, AProcessThatIsGoneIsNotFound) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(absl::IsNotFound(TakeThreadStacks(static_cast<uint32_t>(child), NameStyle::kShort).status()));
}

}  // namespace
}  // namespace clrsampler
