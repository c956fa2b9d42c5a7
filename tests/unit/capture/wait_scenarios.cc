// Where threads wait: what the scheduler's tracepoints tell of threads whose waits are known.
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "capture/feature_report.h"
#include "capture/sampler.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "os/unique_fd.h"
#include "status/status.h"
#include "unit/capture/live_scenarios.h"
#include "unit/capture/live_targets.h"
#include "unit/capture/wait_records.h"

namespace clrsampler::test_support {
namespace {

constexpr int kRounds = 25;
constexpr uint64_t kSleepNs = 20'000'000;

// One that sleeps and one that waits for it, and nothing else, until both are told to end.
struct Pair {
  Pair() {
    if (pipe(go) != 0 || pipe(turn) != 0) abort();
    sleeping = std::thread([this] {
      sleeper = OwnTid();
      Receive(go);
      for (int i = 0; i < kRounds; ++i) {
        const timespec pause{0, kSleepNs};
        nanosleep(&pause, nullptr);
        Send(turn);
      }
    });
    waiting = std::thread([this] {
      waiter = OwnTid();
      for (int i = 0; i < kRounds; ++i) Receive(turn);
    });
  }
  void Begin() { Send(go); }
  static void Send(const int (&to)[2]) {
    if (write(to[1], "", 1) != 1) abort();
  }
  static void Receive(const int (&from)[2]) {
    char byte;
    if (read(from[0], &byte, 1) != 1) abort();
  }

  int go[2], turn[2];
  std::atomic<uint32_t> sleeper{0}, waiter{0};
  std::thread sleeping, waiting;
};

struct Waits {
  std::vector<wire_wait> waits;
  wire_wait last{};  // with the thread's sums
  uint64_t stacks = 0, wrong_stacks = 0, waker_stacks = 0;
  std::string wrong;  // the last one of them
};

std::map<uint32_t, Waits> DrainWaits(Sampler& sampler) {
  std::map<uint32_t, Waits> by_thread;
  std::map<uint64_t, uint32_t> wakers;  // by time
  sampler.Drain([&](std::span<const std::byte> record) {
    wire_header header;
    std::memcpy(&header, record.data(), sizeof header);
    if (header.kind == WIRE_WAIT) {
      wire_wait wait;
      std::memcpy(&wait, record.data(), sizeof wait);
      Waits& of_thread = by_thread[wait.tid];
      of_thread.last = wait;
      if ((wait.flags & WIRE_WAIT_THREAD_ENDED) != 0) return;
      of_thread.waits.push_back(wait);
      const auto waker = wakers.find(wait.woken_ns);
      if (waker != wakers.end()) ++of_thread.waker_stacks;
    } else if (header.kind == WIRE_WAIT_STACK || header.kind == WIRE_WAKER_STACK) {
      const DecodedSample stack = Decode(record);
      if (header.kind == WIRE_WAKER_STACK) {
        wakers[header.time_ns] = stack.head.tid;
        return;
      }
      Waits& of_thread = by_thread[stack.head.tid];
      ++of_thread.stacks;
      const bool fits = of_thread.last.header.time_ns == header.time_ns && stack.well_formed && !stack.kernel.empty() &&
                        stack.head.ip != 0;
      if (fits) return;
      ++of_thread.wrong_stacks;
      of_thread.wrong = absl::StrCat("at ", header.time_ns, " for a wait at ", of_thread.last.header.time_ns, " of ",
                                     of_thread.last.blocked_ns, " and ", of_thread.last.runnable_ns, " ns, ",
                                     stack.kernel.size(), " kernel frames, ip ", stack.head.ip, ", stop ",
                                     stack.head.stop, stack.well_formed ? "" : ", malformed");
    }
  });
  return by_thread;
}

absl::Status TellsWaitsWithTheirWakers(ScenarioSetting& setting, bool table) {
  SamplerOptions options = FollowingWaits();
  options.only_process = getpid();
  options.wait_table = table;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  RETURN_IF_ERROR((*sampler)->Track(getpid()));
  auto pair = std::make_unique<Pair>();
  while (pair->sleeper == 0 || pair->waiter == 0) usleep(1000);
  RETURN_IF_ERROR((*sampler)->Start());
  pair->Begin();
  pair->sleeping.join();
  pair->waiting.join();
  usleep(100'000);
  (*sampler)->StopSampling();
  std::map<uint32_t, Waits> told = DrainWaits(**sampler);
  const auto fail = [](const auto&... parts) { return absl::InternalError(absl::StrCat(parts...)); };
  const wire_counters counters = (*sampler)->counters();
  for (const uint32_t tid : {pair->sleeper.load(), pair->waiter.load()}) {
    const bool sleeps = tid == pair->sleeper;
    const Waits& of_thread = told[tid];
    uint64_t expected = 0, by_sleeper = 0, waited_ns = 0, blocked_ns = 0;
    for (const wire_wait& wait : of_thread.waits) {
      blocked_ns += wait.blocked_ns;
      if (wait.syscall != (sleeps ? SYS_clock_nanosleep : SYS_read) || wait.blocked_weight == 0) continue;
      ++expected;
      waited_ns += wait.blocked_ns + wait.runnable_ns;
      if (wait.waker_tid == pair->sleeper) ++by_sleeper;
    }
    setting.notes += absl::StrCat(" ", sleeps ? "sleeper: " : "waiter: ", expected, " waits, ", of_thread.stacks,
                                  " stacks, ", of_thread.waker_stacks, " of wakers;");
    // On a busy machine one that comes late finds that what it would wait for has come.
    if (waited_ns < kRounds * kSleepNs * 9 / 10) return fail(waited_ns, " ns of ", kRounds, " waits");
    if (!sleeps && by_sleeper != expected) return fail(by_sleeper, " of ", expected, " were ended by the sleeper");
    if (!sleeps && of_thread.waker_stacks < expected) return fail(of_thread.waker_stacks, " stacks of the waker");
    if (of_thread.wrong_stacks != 0)
      return fail(of_thread.wrong_stacks, " wrong stacks of ", of_thread.stacks, ": ", of_thread.wrong);
    if (of_thread.stacks + 1 < of_thread.waits.size()) {
      return fail(of_thread.stacks, " stacks of ", of_thread.waits.size(), " waits");
    }
    const wire_wait& last = of_thread.last;
    if ((last.flags & WIRE_WAIT_THREAD_ENDED) == 0) return fail("the thread's end was not told");
    const uint64_t life = last.header.time_ns - last.seen_ns;
    const uint64_t sum = last.total_cpu_ns + last.total_blocked_ns + last.total_runnable_ns;
    if (sum > life || sum < life - life / 100) return fail("times of ", sum, " ns in a life of ", life);
    if (last.total_blocked_ns < blocked_ns) return fail(last.total_blocked_ns, " ns blocked, ", blocked_ns, " told");
  }
  if (counters.wait_records_lost != 0) return fail(counters.wait_records_lost, " records lost");
  if (counters.waits != counters.wait_short + counters.wait_passed_over + counters.wait_kept) {
    return fail("the counters do not add up: ", counters.waits, " waits");
  }
  setting.notes += absl::StrCat(" ", counters.wait_without_stack, " records without a stack");
  return absl::OkStatus();
}

}  // namespace

absl::Status WaitsAreToldWithTheirWakers(ScenarioSetting& setting) {
  return TellsWaitsWithTheirWakers(setting, /*table=*/false);
}

absl::Status StacksOfWaitsWakeTheReader(ScenarioSetting& setting) {
  constexpr uint64_t kRingBytes = 256 << 10;
  SamplerOptions options = FollowingWaits();
  options.hook_ring_bytes = kRingBytes;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  RETURN_IF_ERROR((*sampler)->Track(getpid()));
  std::atomic<bool> ended{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&ended] {
      while (!ended) usleep(2000);
    });
  }
  RETURN_IF_ERROR((*sampler)->Start());
  const UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  epoll_event wanted{.events = EPOLLIN | EPOLLET, .data = {}};
  epoll_ctl(epoll.get(), EPOLL_CTL_ADD, (*sampler)->hook_ring_fd(), &wanted);
  uint64_t wakeups = 0, bytes = 0;
  const SystemClock clock;
  for (const uint64_t end = clock.Now().ns + 2'000'000'000; clock.Now().ns < end;) {
    if (epoll_wait(epoll.get(), &wanted, 1, 300) > 0) ++wakeups;
    (*sampler)->Drain([&](std::span<const std::byte> record) { bytes += record.size(); });
  }
  ended = true;
  for (std::thread& thread : threads) thread.join();
  setting.notes += absl::StrCat(" ", wakeups, " wake-ups for ", bytes, " bytes");
  if (bytes < 2 * kRingBytes) return absl::OkStatus();  // too slow a machine to tell
  if (wakeups < bytes / kRingBytes)
    return absl::InternalError(absl::StrCat(wakeups, " wake-ups for ", bytes, " bytes"));
  return absl::OkStatus();
}

absl::Status ATableTellsWaitsWithTheirWakers(ScenarioSetting& setting) {
  return TellsWaitsWithTheirWakers(setting, /*table=*/true);
}

}  // namespace clrsampler::test_support
