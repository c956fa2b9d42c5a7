// The look at the end: what it tells of threads that do something else than wait.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "capture/feature_report.h"
#include "capture/sampler.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "status/status.h"
#include "unit/capture/live_scenarios.h"
#include "unit/capture/wait_records.h"

namespace clrsampler::test_support {
namespace {

template <typename... Parts>
absl::Status WrongLook(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

// A child that sleeps a while and ends. Until the destructor nobody asks for its exit status.
class Zombie {
 public:
  explicit Zombie(useconds_t sleep_us) : pid_(fork()) {
    if (pid_ != 0) return;
    usleep(sleep_us);
    _exit(0);
  }
  Zombie(const Zombie&) = delete;
  Zombie& operator=(const Zombie&) = delete;
  ~Zombie() {
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  void AwaitEnd() const {
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }

 private:
  const pid_t pid_;
};

// A thread that computes on a CPU of its own until the destructor, and lets no other run there.
class Hog {
 public:
  Hog()
      : thread_([this] {
          cpu_set_t last;
          CPU_ZERO(&last);
          CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
          sched_setaffinity(0, sizeof last, &last);
          const sched_param first{.sched_priority = 1};
          sched_setscheduler(0, SCHED_FIFO, &first);
          tid_ = OwnTid();
          while (!ended_) {
            // It makes no call.
          }
        }) {
    while (tid_ == 0) usleep(1000);
  }
  Hog(const Hog&) = delete;
  Hog& operator=(const Hog&) = delete;
  ~Hog() {
    ended_ = true;
    thread_.join();
  }
  uint32_t tid() const { return tid_; }

 private:
  std::atomic<uint32_t> tid_{0};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// Threads that wait for nothing until the destructor, and one that wakes every millisecond.
class WaitersAndATicker {
 public:
  explicit WaitersAndATicker(size_t waiters) {
    if (pipe(end_) != 0) abort();
    for (size_t i = 0; i < waiters; ++i) {
      threads_.emplace_back([this] {
        ++ready_;
        char byte;
        if (read(end_[0], &byte, 1) != 0) abort();
      });
    }
    threads_.emplace_back([this] {
      ticker_ = OwnTid();
      while (!ended_) usleep(1000);
    });
    while (ready_ < waiters || ticker_ == 0) usleep(1000);
    usleep(20'000);
  }
  WaitersAndATicker(const WaitersAndATicker&) = delete;
  WaitersAndATicker& operator=(const WaitersAndATicker&) = delete;
  ~WaitersAndATicker() {
    ended_ = true;
    close(end_[1]);
    for (std::thread& thread : threads_) thread.join();
    close(end_[0]);
  }
  uint32_t ticker() const { return ticker_; }

 private:
  int end_[2];
  std::atomic<size_t> ready_{0};
  std::atomic<uint32_t> ticker_{0};
  std::atomic<bool> ended_{false};
  std::vector<std::thread> threads_;
};

// Leaves the last CPU alone.
class OffTheLastCpu {
 public:
  OffTheLastCpu() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t rest = before_;
    CPU_CLR(sysconf(_SC_NPROCESSORS_ONLN) - 1, &rest);
    sched_setaffinity(0, sizeof rest, &rest);
  }
  OffTheLastCpu(const OffTheLastCpu&) = delete;
  OffTheLastCpu& operator=(const OffTheLastCpu&) = delete;
  ~OffTheLastCpu() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

}  // namespace

absl::Status ZombiesWaitForNothing(ScenarioSetting&) {
  auto sampler = Sampler::Create(FollowingWaits(), ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  const Zombie before(0);
  before.AwaitEnd();
  RETURN_IF_ERROR((*sampler)->Track(before.pid()));
  RETURN_IF_ERROR((*sampler)->Start());
  const Zombie meanwhile(50'000);
  RETURN_IF_ERROR((*sampler)->Track(meanwhile.pid()));
  meanwhile.AwaitEnd();
  usleep(100'000);
  (*sampler)->StopSampling();
  const WaitRecords records = DrainWaitRecords(**sampler);
  for (const Zombie* zombie : {&before, &meanwhile}) {
    const wire_wait* open = records.OpenOf(static_cast<uint32_t>(zombie->pid()));
    if (open != nullptr) return WrongLook("a zombie waits for ", open->blocked_ns, " ns");
  }
  const auto told = records.by_thread.find(static_cast<uint32_t>(meanwhile.pid()));
  if (told == records.by_thread.end() || (told->second.back().flags & WIRE_WAIT_THREAD_ENDED) == 0) {
    return WrongLook("the end was not told");
  }
  return absl::OkStatus();
}

absl::Status ALookIsOfOneMoment(ScenarioSetting& setting) {
  constexpr size_t kWaiters = 300;  // whose stacks take longer than the ticker waits
  SamplerOptions options = FollowingWaits();
  options.min_wait_ns = 20'000'000;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  RETURN_IF_ERROR((*sampler)->Track(getpid()));
  const WaitersAndATicker threads(kWaiters);
  RETURN_IF_ERROR((*sampler)->Start());
  usleep(100'000);
  const uint64_t before_ns = SystemClock().Now().ns;
  (*sampler)->StopSampling();
  const uint64_t took_ns = SystemClock().Now().ns - before_ns;
  const WaitRecords records = DrainWaitRecords(**sampler);
  const wire_wait* ticker = records.OpenOf(threads.ticker());
  if (ticker == nullptr) return WrongLook("the ticker was not looked at");
  setting.notes += absl::StrCat(" ", took_ns, " ns for ", records.by_thread.size(), " threads");
  if (ticker->blocked_weight != 0) return WrongLook("the ticker waits for ", ticker->blocked_ns, " ns");
  size_t waiting = 0;
  for (const auto& [tid, waits] : records.by_thread) {
    const wire_wait* open = records.OpenOf(tid);
    if (open == nullptr) continue;
    if (open->header.time_ns != ticker->header.time_ns) return WrongLook("looks at different times");
    const uint64_t life_ns = open->header.time_ns - open->seen_ns;
    const uint64_t sum_ns = open->total_cpu_ns + open->total_blocked_ns + open->total_runnable_ns;
    if (sum_ns > life_ns + life_ns / 50) return WrongLook(sum_ns, " ns in a life of ", life_ns);
    if (open->blocked_weight == 0) continue;
    if ((open->flags & WIRE_WAIT_HAS_STACK) == 0) return WrongLook("a wait without a stack");
    ++waiting;
  }
  if (waiting < kWaiters) return WrongLook(waiting, " threads wait");
  uint64_t bytes = 0;
  size_t of_looks = 0;
  for (const DecodedSample& stack : records.stacks) {
    if ((stack.head.flags & WIRE_SAMPLE_LOOK) == 0) continue;
    ++of_looks;
    bytes += stack.head.header.size;
  }
  if (of_looks < kWaiters) return WrongLook(of_looks, " stacks of looks");
  setting.notes += absl::StrCat(", ", bytes / of_looks, " bytes each");
  // Behind the end of a stack are the guard page and the stack of another thread.
  if (bytes / of_looks > 24'000) return WrongLook(bytes / of_looks, " bytes a stack");
  return absl::OkStatus();
}

absl::Status AThreadThatWasNeverSwitchedHasRun(ScenarioSetting& setting) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
    setting.notes += " (not on one CPU)";
    return absl::OkStatus();
  }
  constexpr int kTries = 10;
  for (int i = 0; i < kTries; ++i) {
    auto sampler = Sampler::Create(FollowingWaits(), ProbeFeatures());
    if (!sampler.ok()) return sampler.status();
    RETURN_IF_ERROR((*sampler)->Track(getpid()));
    const OffTheLastCpu elsewhere;
    const Hog hog;
    RETURN_IF_ERROR((*sampler)->Start());
    usleep(200'000);
    (*sampler)->StopSampling();
    const WaitRecords records = DrainWaitRecords(**sampler);
    const wire_wait* open = records.OpenOf(hog.tid());
    if (open == nullptr) return WrongLook("the thread was not looked at");
    // The kernel's own threads of that CPU come first.
    if (open->total_waits != 0) continue;
    setting.notes += absl::StrCat(" ", open->total_cpu_ns, " ns of CPU time, ", open->total_runnable_ns, " runnable");
    if (open->total_cpu_ns < 190'000'000 || open->total_runnable_ns != 0 || open->total_blocked_ns != 0) {
      return WrongLook(open->total_cpu_ns, " ns of CPU time in 200 ms");
    }
    return absl::OkStatus();
  }
  setting.notes += absl::StrCat(" (it was switched in each of ", kTries, " tries)");
  return absl::OkStatus();
}

}  // namespace clrsampler::test_support
