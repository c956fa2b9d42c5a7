// Uses of the scheduler's own notes: threads that are woken soon and get a CPU late, and many short waits.
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
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

constexpr int kHeldRounds = 10;
constexpr uint64_t kHeldNs = 20'000'000, kHeldAtTheEndNs = 200'000'000, kHeldAtTheBeginningNs = 900'000'000,
                   kMomentNs = 300'000;

uint64_t NowNs() { return SystemClock().Now().ns; }

void SpinFor(uint64_t ns) {
  for (const uint64_t end = NowNs() + ns; NowNs() < end;) {
    // It keeps its CPU.
  }
}

void SendByte(int to) {
  if (write(to, "", 1) != 1) abort();
}

bool ReceiveByte(int from) {
  char byte;
  return read(from, &byte, 1) == 1;
}

// Whether the thread of this process waits.
bool Sleeps(uint32_t tid) {
  std::string stat;
  std::getline(std::ifstream(absl::StrCat("/proc/self/task/", tid, "/stat")), stat);
  const size_t name_end = stat.rfind(')');
  return name_end + 2 < stat.size() && stat[name_end + 2] == 'S';
}

void StayOnTheLastCpu(bool stay) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const long last = sysconf(_SC_NPROCESSORS_ONLN) - 1;
  for (long cpu = 0; cpu <= last; ++cpu) {
    if ((cpu == last) == stay) CPU_SET(cpu, &cpus);
  }
  sched_setaffinity(0, sizeof cpus, &cpus);
}

// Two threads on the last CPU: one waits for bytes, and one that comes first holds the CPU when it is told to. The
// thread that makes them leaves them the last CPU, until the destructor.
class HeldCpu {
 public:
  HeldCpu() {
    if (pipe(turn_) != 0 || pipe(hold_) != 0) abort();
    sched_getaffinity(0, sizeof before_, &before_);
    StayOnTheLastCpu(false);
    waiting_ = std::thread([this] {
      StayOnTheLastCpu(true);
      waiter_ = OwnTid();
      while (ReceiveByte(turn_[0])) {
        got_cpu_ns_ = NowNs();
        ++received_;
      }
    });
    holding_ = std::thread([this] { Hold(); });
    while (waiter_ == 0 || !ready_) usleep(1000);
  }
  HeldCpu(const HeldCpu&) = delete;
  HeldCpu& operator=(const HeldCpu&) = delete;
  ~HeldCpu() {
    close(turn_[1]);
    close(hold_[1]);
    waiting_.join();
    holding_.join();
    close(turn_[0]);
    close(hold_[0]);
    sched_setaffinity(0, sizeof before_, &before_);
  }

  uint32_t waiter() const { return waiter_; }
  uint64_t received() const { return received_; }

  // The waiter runs and waits again, the CPU is held, and then the waiter is woken. Returns when that was; nullopt:
  // this thread had no CPU itself in that moment.
  std::optional<uint64_t> WakeBehindTheHolder(uint64_t held_ns) {
    const uint64_t before = received_, held_before = times_held_;
    held_ns_ = held_ns;
    SendByte(turn_[1]);
    while (received_ == before || !Sleeps(waiter_)) {
      // It is to have run, and to wait again.
    }
    SendByte(hold_[1]);
    while (times_held_ == held_before) {
      // The holder's first instruction is awaited.
    }
    const uint64_t woken_ns = NowNs();
    SendByte(turn_[1]);
    if (NowNs() - woken_ns > kMomentNs) return std::nullopt;
    return woken_ns;
  }
  // To the other CPUs, from its queue as well.
  void LetTheWaiterGoElsewhere() const {
    cpu_set_t rest = before_;
    CPU_CLR(sysconf(_SC_NPROCESSORS_ONLN) - 1, &rest);
    sched_setaffinity(static_cast<pid_t>(waiter_.load()), sizeof rest, &rest);
  }
  // When the waiter had its CPU behind WakeBehindTheHolder, which has received `before` bytes in all.
  uint64_t AwaitCpu(uint64_t before) const {
    while (received_ < before + 2) usleep(1000);
    return got_cpu_ns_;
  }

 private:
  void Hold() {
    StayOnTheLastCpu(true);
    const sched_param first{.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &first);
    ready_ = true;
    while (ReceiveByte(hold_[0])) {
      ++times_held_;
      SpinFor(held_ns_);
    }
  }

  int turn_[2], hold_[2];
  cpu_set_t before_;
  std::atomic<uint32_t> waiter_{0};
  std::atomic<bool> ready_{false};
  std::atomic<uint64_t> held_ns_{0}, times_held_{0}, received_{0}, got_cpu_ns_{0};
  std::thread waiting_, holding_;
};

// Where a thread has nowhere else to go, nothing is to be seen.
bool HasOneCpu(ScenarioSetting& setting) {
  if (sysconf(_SC_NPROCESSORS_ONLN) > 1) return false;
  setting.notes += " (not on one CPU)";
  return true;
}

// A sampler of this process's waits, which has not begun.
absl::StatusOr<std::unique_ptr<Sampler>> OfOwnWaits() {
  ASSIGN_OR_RETURN(std::unique_ptr<Sampler> sampler, Sampler::Create(FollowingWaits(), ProbeFeatures()));
  RETURN_IF_ERROR(sampler->Track(getpid()));
  return sampler;
}

struct Round {
  uint64_t woken_ns, got_cpu_ns;
};

// The calling thread's times, as the kernel counts them.
struct OwnTimes {
  uint64_t cpu_ns = 0, switches = 0;
};
OwnTimes TimesOfThisThread() {
  timespec cpu{};
  rusage usage{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  getrusage(RUSAGE_THREAD, &usage);
  return {.cpu_ns = static_cast<uint64_t>(cpu.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(cpu.tv_nsec),
          .switches = static_cast<uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw)};
}

uint64_t Distance(uint64_t one, uint64_t other) { return one > other ? one - other : other - one; }

absl::Status RoundsWereTold(const std::vector<Round>& rounds, const std::vector<wire_wait>& waits,
                            ScenarioSetting& setting) {
  // A host that takes the CPU away before the scheduler queues the thread makes the queue shorter: 1 in 500 rounds
  // beside busy programs. Two of ten are 1 in 5,000 runs.
  int soon_woken = 0, moved = 0;
  for (const Round& round : rounds) {
    const uint64_t queued_ns = round.got_cpu_ns - round.woken_ns;
    if (queued_ns < kHeldNs / 2) continue;  // it came when the CPU was free
    uint64_t told_ns = 0, blocked_ns = 0;
    for (const wire_wait& wait : waits) {
      const uint64_t ended_ns = wait.header.time_ns;
      // A wait whose interrupt comes late is told when the thread waits again.
      if ((wait.flags & WIRE_WAIT_OPEN) != 0 || ended_ns < round.woken_ns || ended_ns > round.got_cpu_ns + 2'000'000)
        continue;
      if (wait.runnable_ns > kHeldNs / 2 && wait.runnable_weight == 0)
        return absl::InternalError("the time in the queue has no weight");
      // Another thread may take the CPU once more, before the waiter is out of the kernel.
      told_ns += wait.runnable_ns;
      blocked_ns += wait.blocked_ns;
    }
    if (Distance(told_ns, queued_ns) > 1'000'000 && (told_ns < queued_ns / 2 || ++moved > 1)) {
      return absl::InternalError(absl::StrCat(told_ns, " ns in the queue, and they were ", queued_ns));
    }
    if (blocked_ns < 1'000'000) ++soon_woken;
  }
  setting.notes += absl::StrCat(" ", soon_woken, " of ", rounds.size(), " were woken within a millisecond");
  return absl::OkStatus();
}

}  // namespace

absl::Status AThreadThatIsWokenSoonWaitsForItsCpu(ScenarioSetting& setting) {
  if (HasOneCpu(setting)) return absl::OkStatus();
  auto sampler = OfOwnWaits();
  if (!sampler.ok()) return sampler.status();
  HeldCpu cpu;
  RETURN_IF_ERROR((*sampler)->Start());
  std::vector<Round> rounds;
  for (int i = 0; i < kHeldRounds; ++i) {
    usleep(5'000);
    const uint64_t before = cpu.received();
    const std::optional<uint64_t> woken_ns = cpu.WakeBehindTheHolder(kHeldNs);
    const uint64_t got_cpu_ns = cpu.AwaitCpu(before);
    if (woken_ns) rounds.push_back({.woken_ns = *woken_ns, .got_cpu_ns = got_cpu_ns});
  }
  if (rounds.size() < kHeldRounds / 2) return absl::InternalError("a machine that is too busy to tell");
  usleep(5'000);
  const uint64_t before = cpu.received();
  const std::optional<uint64_t> woken_ns = cpu.WakeBehindTheHolder(kHeldAtTheEndNs);
  usleep(50'000);
  (*sampler)->StopSampling();
  const bool held = woken_ns && cpu.received() == before + 1;
  const WaitRecords records = DrainWaitRecords(**sampler);
  const auto waits = records.by_thread.find(cpu.waiter());
  if (waits == records.by_thread.end()) return absl::InternalError("nothing of the thread that waits");
  RETURN_IF_ERROR(RoundsWereTold(rounds, waits->second, setting));
  const wire_wait* open = records.OpenOf(cpu.waiter());
  if (open == nullptr) return absl::InternalError("the thread was not looked at");
  if (!held) {
    setting.notes += ", the look came late";
    return absl::OkStatus();
  }
  const uint64_t queued_ns = open->header.time_ns - *woken_ns;
  if (Distance(open->runnable_ns, queued_ns) > 2'000'000 || open->runnable_weight == 0) {
    return absl::InternalError(
        absl::StrCat(open->runnable_ns, " ns in the queue at the end, and they were ", queued_ns));
  }
  return absl::OkStatus();
}

absl::Status AThreadThatIsQueuedFromTheBeginningWantsACpu(ScenarioSetting& setting) {
  if (HasOneCpu(setting)) return absl::OkStatus();
  auto sampler = OfOwnWaits();
  if (!sampler.ok()) return sampler.status();
  HeldCpu cpu;
  usleep(5'000);
  const uint64_t before = cpu.received();
  const bool woken = cpu.WakeBehindTheHolder(kHeldAtTheBeginningNs).has_value();
  const uint64_t begins_ns = NowNs();
  RETURN_IF_ERROR((*sampler)->Start());
  const uint64_t began_ns = NowNs();
  usleep(50'000);
  const bool queued = woken && cpu.received() == before + 1;
  cpu.LetTheWaiterGoElsewhere();
  const uint64_t got_cpu_ns = cpu.AwaitCpu(before);
  usleep(5'000);
  (*sampler)->StopSampling();
  if (!queued) {
    setting.notes += " (it began late)";
    return absl::OkStatus();
  }
  const WaitRecords records = DrainWaitRecords(**sampler);
  const auto waits = records.by_thread.find(cpu.waiter());
  if (waits == records.by_thread.end()) return absl::InternalError("nothing of the thread");
  const wire_wait& first = waits->second.front();
  const uint64_t least_ns = got_cpu_ns - began_ns, most_ns = got_cpu_ns - begins_ns, margin_ns = 20'000'000;
  if (first.blocked_ns != 0 || first.runnable_ns + margin_ns < least_ns || first.runnable_ns > most_ns + margin_ns) {
    return absl::InternalError(absl::StrCat(first.runnable_ns, " ns in queues and ", first.blocked_ns,
                                            " ns blocked, and they were ", least_ns, " to ", most_ns, " in queues"));
  }
  return absl::OkStatus();
}

absl::Status ShortWaitsAreSummedUp(ScenarioSetting& setting) {
  constexpr int kWaits = 1000;
  auto sampler = OfOwnWaits();
  if (!sampler.ok()) return sampler.status();
  RETURN_IF_ERROR((*sampler)->Start());
  std::atomic<uint32_t> tid{0};
  OwnTimes own;
  std::thread([&] {
    tid = OwnTid();
    for (int i = 0; i < kWaits; ++i) {
      usleep(100);
      SpinFor(50'000);
    }
    own = TimesOfThisThread();
  }).join();
  usleep(100'000);
  (*sampler)->StopSampling();
  const wire_counters counters = (*sampler)->counters();
  const WaitRecords records = DrainWaitRecords(**sampler);
  const auto waits = records.by_thread.find(tid);
  if (waits == records.by_thread.end()) return absl::InternalError("nothing of the thread");
  const wire_wait& last = waits->second.back();
  const auto fail = [](const auto&... parts) { return absl::InternalError(absl::StrCat(parts...)); };
  if ((last.flags & WIRE_WAIT_THREAD_ENDED) == 0) return fail("the thread's end was not told");
  setting.notes += absl::StrCat(" ", last.total_waits, " waits, ", last.total_blocked_ns / 1'000'000, " ms blocked, ",
                                last.total_runnable_ns / 1'000'000, " in queues, ", last.total_cpu_ns / 1'000'000,
                                " on a CPU; ", own.switches, " switches, ", own.cpu_ns / 1'000'000, " ms on a CPU");
  // The first wait is that for its first CPU, and it leaves its last one without a wait.
  if (Distance(last.total_waits, own.switches) > 3)
    return fail(last.total_waits, " waits, ", own.switches, " switches");
  const uint64_t life = last.header.time_ns - last.seen_ns;
  const uint64_t sum = last.total_cpu_ns + last.total_blocked_ns + last.total_runnable_ns;
  if (sum > life || sum < life - life / 1000) return fail("times of ", sum, " ns in a life of ", life);
  if (last.total_blocked_ns < uint64_t{kWaits} * 100'000)
    return fail(last.total_blocked_ns, " ns in ", kWaits, " waits");
  // Interrupts and what a hypervisor takes count as no thread's CPU time.
  if (last.total_cpu_ns < own.cpu_ns - own.cpu_ns / 50)
    return fail(last.total_cpu_ns, " ns on a CPU, and ", own.cpu_ns);
  if (counters.waits != counters.wait_short + counters.wait_passed_over + counters.wait_kept) {
    return fail("the counters do not add up: ", counters.waits, " waits");
  }
  return absl::OkStatus();
}

}  // namespace clrsampler::test_support
