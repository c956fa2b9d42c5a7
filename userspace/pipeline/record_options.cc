#include "pipeline/record_options.h"

#include <algorithm>
#include <thread>

#include "capture/sampling_period.h"

namespace clrsampler {
namespace {

// The ring for the reports of hooks where compilations come with stacks. A program that starts compiles a thousand
// methods a second, each with some KiB.
constexpr uint64_t kJitStacksRingBytes = 16 << 20;

// The same in a continuous run. It holds a second of such a program, or 240 ms of 70,000 compilations without stacks.
// Twice that is in the agent's memory, as the ring is mapped twice.
constexpr uint64_t kHookRingBytes = 4 << 20;

// The most that one process's hooks may report in a continuous run, on average: 800 collections a second of five hits,
// or 2,000 compilations of two. The number at once covers the start of a large program: it compiles 12,000 methods,
// 2,000 of them with stacks. It is less than the intake holds.
constexpr uint32_t kHookHitsASecond = 4000;
constexpr uint32_t kHookHitsAtOnce = 40'000;

// The most that the hooks of all processes may report there. An event takes 5 to 10 us of the agent's CPU time. So that
// is 4 % of a CPU at most, and half a second of one at once.
constexpr uint32_t kHostHitsASecond = kHookHitsASecond;
constexpr uint32_t kHostHitsAtOnce = 2 * kHookHitsAtOnce;

// Without thinning a CPU sends so many stacks of allocations a second.
constexpr uint32_t kAllocationStacks = 400;
// The most stacks that all CPUs send in a continuous run, where that is less than what --frequency gives. A stack and
// its records count as ten events. So these are a quarter of what the host may report.
constexpr uint32_t kHostAllocationStacks = 100;

// In a continuous run each CPU sends as many stacks of allocations as samples.
uint32_t AllocationThinning(uint32_t frequency_hz) {
  const uint32_t by_rate = kAllocationStacks / std::max(frequency_hz, 1u);
  const uint32_t cpus = std::max(std::thread::hardware_concurrency(), 1u);
  return std::max({by_rate, cpus * kAllocationStacks / kHostAllocationStacks, 1u});
}

// The same for waits. A CPU reports 500 of them a second without thinning. With its stack and its waker's stack one
// counts as 17 events.
constexpr uint32_t kWaitsAtOnce = 500;
constexpr uint32_t kHostWaits = 100;

uint32_t WaitThinning() { return std::max(std::thread::hardware_concurrency() * kWaitsAtOnce / kHostWaits, 1u); }

}  // namespace

uint32_t RecordOptions::sampling_hz() const { return SamplesKeptFor(*this) == SamplesKept::kNone ? 1 : frequency_hz; }

uint64_t RecordOptions::period_ns() const { return SamplingPeriodNs(sampling_hz()); }

bool IsWholeHost(const RecordOptions& options) { return options.pids.empty() && options.command.empty(); }

bool HasWaits(const RecordOptions& options) {
  return options.windows.has_value() ? options.windows->waits : HasWaits(options.view);
}

RuntimeEvents EventsFor(const RecordOptions& options) {
  const bool told_of_compilations = options.on_compilation != nullptr || options.view == RecordView::kJit;
  RuntimeEvents events;
  events.roles = options.roles && options.view == RecordView::kCpu && !options.only_blame;
  const bool told_of_pauses = options.on_pause != nullptr || options.on_runtime_event != nullptr;
  const bool waits = HasWaits(options) && options.roles;
  events.pauses = waits || told_of_pauses || options.view == RecordView::kPause ||
                  options.view == RecordView::kSuspendDelay || options.mark_suspension || events.roles ||
                  options.async_stacks;  // collections move what leads to awaiters
  events.resumed = told_of_pauses;       // profiles have no use for it
  events.compilations = told_of_compilations || events.roles;
  events.allocations =
      options.windows.has_value() ? options.windows->allocations : options.view == RecordView::kAllocations;
  events.exceptions = options.view == RecordView::kExceptions;
  events.compilation_stacks = told_of_compilations || (options.windows.has_value() && events.compilations);
  return events;
}

SamplesKept SamplesKeptFor(const RecordOptions& options) {
  switch (options.view) {
    case RecordView::kJit:
    case RecordView::kAllocations:
    case RecordView::kExceptions:
    case RecordView::kOffCpu:
      return SamplesKept::kNone;
    default:
      return options.only_blame ? SamplesKept::kPossiblyBlamed : SamplesKept::kAll;
  }
}

double ProbeCostShareFor(const RecordOptions& options) {
  const bool limited = options.view == RecordView::kCpu || options.view == RecordView::kAllocations ||
                       options.view == RecordView::kExceptions || HasWaits(options.view) || options.windows;
  const bool asked_for = options.on_pause != nullptr || options.on_runtime_event != nullptr ||
                         options.on_compilation != nullptr || options.mark_suspension || !limited;
  return asked_for ? 0 : options.probe_cost_share;
}

EventBudget HookEventsFor(const RecordOptions& options) {
  return options.windows.has_value() ? EventBudget(kHostHitsASecond, kHostHitsAtOnce) : EventBudget();
}

SamplerOptions SamplerOptionsFor(const RecordOptions& options) {
  const RuntimeEvents events = EventsFor(options);
  const bool in_windows = options.windows.has_value();
  SamplerOptions sampler;
  sampler.frequency_hz = static_cast<int>(options.sampling_hz());
  sampler.ring_bytes = options.ring_bytes;
  sampler.gap_words = options.gap_words;
  sampler.max_frames = options.max_frames;
  sampler.word_limit = options.stack_words;
  sampler.filter_processes = !IsWholeHost(options);
  sampler.follow_children = !options.command.empty();
  if (options.command.empty() && options.pids.size() == 1) sampler.only_process = static_cast<pid_t>(options.pids[0]);
  sampler.async_objects = options.async_stacks;
  sampler.suspension_hooks = events.pauses;
  sampler.resumed_hook = events.resumed;
  sampler.jit_hooks = events.compilations;
  sampler.jit_stacks = events.compilation_stacks;
  sampler.allocation_hooks = events.allocations;
  sampler.exception_hooks = events.exceptions;
  sampler.thread_creations = options.on_thread_created != nullptr;
  sampler.waits = HasWaits(options);
  sampler.min_wait_ns = options.min_wait_ns;
  sampler.waker_stacks = options.waker_stacks;
  if (in_windows) {
    sampler.allocation_thinning = AllocationThinning(options.frequency_hz);
    sampler.wait_thinning = WaitThinning();
    sampler.wait_looks = true;
    sampler.hook_hits_a_second = kHookHitsASecond;
    sampler.hook_hits_at_once = kHookHitsAtOnce;
  }
  if (options.ring_bytes != 0) {
    sampler.hook_ring_bytes = options.ring_bytes;
  } else {
    const bool stacks = events.compilation_stacks || events.allocations || events.exceptions || sampler.waits ||
                        sampler.thread_creations;
    sampler.hook_ring_bytes = stacks && !in_windows ? kJitStacksRingBytes : kHookRingBytes;
  }
  return sampler;
}

}  // namespace clrsampler
