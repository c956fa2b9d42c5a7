// The table of threads by number, which kernels before 6.4 need: numbers that are used again, and a table that is full.
#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <map>
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

constexpr useconds_t kPauseUs = 100'000;
constexpr uint32_t kRoom = 64;  // of a table that is to become full

template <typename... Parts>
absl::Status WrongTable(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

// A child of that number, which sleeps for a moment and ends. False: the number can't be chosen.
bool LiveAs(pid_t pid) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<uint64_t>(&pid);
  arguments.set_tid_size = 1;
  const long child = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child == 0) {
    usleep(kPauseUs / 2);
    syscall(SYS_exit_group, 0);
  }
  return child == pid && waitpid(pid, nullptr, 0) == pid;
}

pid_t NumberOfAnEndedChild() {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
  return pid;
}

SamplerOptions WithTable() {
  SamplerOptions options = FollowingWaits();
  options.wait_table = true;
  return options;
}

// Threads that sleep, run for a moment, and sleep again, until the destructor.
class Sleepers {
 public:
  explicit Sleepers(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        while (!ended_) usleep(kPauseUs);
      });
    }
  }
  Sleepers(const Sleepers&) = delete;
  Sleepers& operator=(const Sleepers&) = delete;
  ~Sleepers() {
    ended_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> ended_{false};
  std::vector<std::thread> threads_;
};

// The sum over all stretches of a thread. They are known apart by when they began.
uint64_t LongestLife(const std::vector<wire_wait>& records) {
  std::map<uint64_t, uint64_t> stretches;
  for (const wire_wait& wait : records) {
    uint64_t& longest = stretches[wait.seen_ns];
    longest = std::max<uint64_t>(longest, wait.total_cpu_ns + wait.total_blocked_ns + wait.total_runnable_ns);
  }
  uint64_t sum = 0;
  for (const auto& [seen, longest] : stretches) sum += longest;
  return sum;
}

}  // namespace

absl::Status AThreadWithAnothersNumberBeginsAnew(ScenarioSetting&) {
  auto sampler = Sampler::Create(WithTable(), ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  const pid_t pid = NumberOfAnEndedChild();
  RETURN_IF_ERROR((*sampler)->Track(pid));
  RETURN_IF_ERROR((*sampler)->Start());
  if (!LiveAs(pid)) return WrongTable("the number of a process could not be chosen");
  usleep(2 * kPauseUs);
  if (!LiveAs(pid)) return WrongTable("the number could not be used again");
  (*sampler)->StopSampling();
  const WaitRecords records = DrainWaitRecords(**sampler);
  std::vector<wire_wait> ends;
  for (const auto& [tid, waits] : records.by_thread) {
    for (const wire_wait& wait : waits) {
      if ((wait.flags & WIRE_WAIT_THREAD_ENDED) != 0) ends.push_back(wait);
    }
  }
  if (ends.size() != 2) return WrongTable(ends.size(), " ends were told of two");
  if (ends[1].seen_ns <= ends[0].header.time_ns) return WrongTable("the second one began before the first had ended");
  const uint64_t waited_ns = ends[1].total_blocked_ns, life_ns = ends[1].header.time_ns - ends[1].seen_ns;
  if (waited_ns > life_ns) return WrongTable("it waited for ", waited_ns, " ns of a life of ", life_ns);
  if ((*sampler)->counters().wait_seen_anew != 0) return WrongTable("none was forgotten");
  return absl::OkStatus();
}

absl::Status ThreadsBeyondTheTableBeginAnew(ScenarioSetting& setting) {
  const auto cpus = static_cast<size_t>(sysconf(_SC_NPROCESSORS_CONF));
  SamplerOptions options = WithTable();
  options.wait_table_threads = kRoom;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  RETURN_IF_ERROR((*sampler)->Track(getpid()));
  const Sleepers sleepers(2 * kRoom + 2 * 128 * cpus);
  RETURN_IF_ERROR((*sampler)->Start());
  const uint64_t began_ns = SystemClock().Now().ns;
  usleep(12 * kPauseUs);
  (*sampler)->StopSampling();
  const uint64_t lasted_ns = SystemClock().Now().ns - began_ns;
  const WaitRecords records = DrainWaitRecords(**sampler);
  uint64_t longest_wait_ns = 0, longest_life_ns = 0;
  for (const auto& [tid, waits] : records.by_thread) {
    if (tid == OwnTid()) continue;
    for (const wire_wait& wait : waits) longest_wait_ns = std::max<uint64_t>(longest_wait_ns, wait.blocked_ns);
    longest_life_ns = std::max(longest_life_ns, LongestLife(waits));
  }
  const uint64_t anew = (*sampler)->counters().wait_seen_anew;
  setting.notes += absl::StrCat(" ", records.by_thread.size(), " threads, ", anew, " times anew, longest wait ",
                                longest_wait_ns, " ns, longest life ", longest_life_ns, " of ", lasted_ns);

  if (anew == 0) return WrongTable("no thread was pushed out of the table");
  // The first sleep may have begun before.
  if (longest_wait_ns > 3 * uint64_t{kPauseUs} * 1000) return WrongTable("a wait of ", longest_wait_ns, " ns");
  if (longest_life_ns > lasted_ns + lasted_ns / 50) return WrongTable("a life of ", longest_life_ns, " ns");
  return absl::OkStatus();
}

}  // namespace clrsampler::test_support
