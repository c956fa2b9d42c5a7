// Waits by an agent in a pid namespace of its own: threads that it shows, and those that it does not.
#include <linux/sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "capture/feature_report.h"
#include "capture/sampler.h"
#include "clrsampler/wire.h"
#include "status/status.h"
#include "unit/capture/live_scenarios.h"
#include "unit/capture/wait_records.h"

namespace clrsampler::test_support {
namespace {

constexpr size_t kThreadsInside = 5;
constexpr int kTurns = 10;  // on a busy machine others stand for some of them
constexpr useconds_t kNapUs = 20'000;

template <typename... Parts>
absl::Status WrongNamespace(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

// The first process of a pid namespace: waits for some turns, and then for its threads, which sleep.
class Inside {
 public:
  Inside() {
    if (pipe(go_) != 0) abort();
    clone_args arguments{};
    arguments.flags = CLONE_NEWPID;
    arguments.exit_signal = SIGCHLD;
    pid_ = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
    if (pid_ == 0) Live();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      AwaitEnd();
    }
    for (const int end : go_) close(end);
  }

  uint32_t Inode() const {
    struct stat status {};
    return stat(absl::StrCat("/proc/", pid_, "/ns/pid").c_str(), &status) == 0 ? static_cast<uint32_t>(status.st_ino)
                                                                               : 0;
  }
  void Go() {
    if (write(go_[1], "", 1) != 1) abort();
  }
  void AwaitEnd() {
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  [[noreturn]] void Live() const {
    char byte;
    for (int turn = 0; turn < kTurns; ++turn) {
      if (read(go_[0], &byte, 1) != 1) _exit(1);
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreadsInside; ++i) {
      threads.emplace_back([] {
        for (int nap = 0; nap < 5; ++nap) usleep(kNapUs);
      });
    }
    for (std::thread& thread : threads) thread.join();
    _exit(0);
  }

  int go_[2];
  pid_t pid_ = -1;
};

}  // namespace

absl::Status WaitsOutsideOfTheNamespaceAreNoProcess(ScenarioSetting& setting) {
  Inside inside;
  SamplerOptions options = FollowingWaits();
  options.filter_processes = false;
  options.pid_namespace_inode = inside.Inode();
  if (options.pid_namespace_inode == 0) return WrongNamespace("no pid namespace could be made");
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  RETURN_IF_ERROR((*sampler)->Start());
  for (int turn = 0; turn < kTurns; ++turn) {
    usleep(kNapUs);
    inside.Go();
  }
  inside.AwaitEnd();
  (*sampler)->StopSampling();

  const WaitRecords records = DrainWaitRecords(**sampler);
  const uint64_t outside = (*sampler)->counters().wait_outside;
  std::set<uint32_t> ended;
  bool woken_from_outside = false;
  for (const auto& [tid, waits] : records.by_thread) {
    for (const wire_wait& wait : waits) {
      if (wait.tgid != 1) return WrongNamespace("a wait of thread ", tid, " of process ", wait.tgid);
      if ((wait.flags & WIRE_WAIT_THREAD_ENDED) != 0 && !ended.insert(tid).second) {
        return WrongNamespace("thread ", tid, " has ended twice");
      }
      // This process has ended it.
      if (wait.syscall != SYS_read || wait.blocked_weight == 0) continue;
      if ((wait.flags & WIRE_WAIT_WAKER_OUTSIDE) == 0) return WrongNamespace("the waker was not outside");
      if (wait.waker_tid != 0) return WrongNamespace("the waker has the number ", wait.waker_tid);
      woken_from_outside = true;
    }
  }
  setting.notes += absl::StrCat(" ", outside, " records of others, ", ended.size(), " ends");
  if (outside == 0) return WrongNamespace("the waits of this process were not met");
  if (!woken_from_outside) return WrongNamespace("the wait for this process was not told");
  if (ended.size() != kThreadsInside + 1 || ended.contains(0))
    return WrongNamespace(ended.size(), " threads have ended");
  return absl::OkStatus();
}

}  // namespace clrsampler::test_support
