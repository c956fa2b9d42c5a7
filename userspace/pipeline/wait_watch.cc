#include "pipeline/wait_watch.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "capture/open_waits.h"
#include "profile/method_text.h"
#include "symbols/awaits.h"

namespace clrsampler {
namespace {

// A waker's stack waits for the record of the wait that it ended, which comes when the woken thread has a CPU.
constexpr uint64_t kMaxWakerAgeNs = 5'000'000'000;
constexpr size_t kMaxWakers = 4096;

// Where the kernel's part of a wait ends and its scheduler begins.
bool IsScheduler(absl::string_view name) {
  return name == "schedule" || name == "__schedule" || absl::StartsWith(name, "preempt_schedule") ||
         name == "schedule_preempt_disabled" || name == "irqentry_exit_cond_resched" || name == "__cond_resched" ||
         name == "schedule_tail" || name == "ret_from_fork";
}

// The kernel enters an interrupt's handler by these functions. A thread that the interrupt meets has not woken anybody.
// Functions that change to the interrupts' stack do not count: a thread's own message by a socket is delivered on that
// stack, too.
bool IsInterruptEntry(absl::string_view name) {
  return absl::StartsWith(name, "asm_sysvec_") || absl::StartsWith(name, "sysvec_") ||
         absl::StartsWith(name, "asm_common_interrupt") || name == "common_interrupt" || name == "el1_interrupt" ||
         name == "el0_interrupt" || absl::EndsWith(name, "_64_irq") || name == "el1_irq" || name == "el0_irq" ||
         name == "gic_handle_irq" || name == "__handle_domain_irq" || name == "apic_timer_interrupt" ||
         absl::StartsWith(name, "fred_");
}

// A timer, or a packet that came by the network. The kernel looks for these where a thread ends a section without such
// interrupts, and the thread has nothing to do with them. Its own message to a process of this host comes by the
// backlog.
bool IsDeferredInterrupt(std::span<const absl::string_view> kernel) {
  const auto has = [&](absl::string_view name) {
    return std::find(kernel.begin(), kernel.end(), name) != kernel.end();
  };
  return has("run_timer_softirq") || has("hrtimer_run_softirq") || (has("net_rx_action") && !has("process_backlog"));
}

// A single-file program has the runtime in itself. Its threads can't be told from those of native code.
bool IsRuntime(absl::string_view module) {
  return absl::StartsWith(module, "libcoreclr") || absl::StartsWith(module, "libclrjit") ||
         absl::StartsWith(module, "libclrgc") || absl::StartsWith(module, "libSystem.Native");
}

// The most time between a look and the moment that it describes. Real looks take far less.
constexpr uint64_t kMaxShiftNs = 1'000'000'000;
// A wait for the runtime lies within a pause, give or take so much. A thread that needs memory may wait for a thread of
// the collector, which asks for the pause when it has a CPU, and wakes the others when the pause is over. Another
// thread gives its CPU away after 3 ms at the most (sched_base_slice_ns, sched_min_granularity_ns).
constexpr uint64_t kAroundPauseNs = 3 * kMillisecondNs;
// A thread tells of its wait when it has a CPU again. On a busy machine more pauses are over by then.
constexpr size_t kMaxPauses = 16;

// A look reports each thread. A thread that was not heard of for so long has ended unseen.
constexpr uint64_t kMaxSilenceNs = 120'000'000'000;

void Subtract(ThreadTimes& from, const ThreadTimes& what) {
  from.cpu_ns -= what.cpu_ns;
  from.blocked_ns -= what.blocked_ns;
  from.runnable_ns -= what.runnable_ns;
  from.short_ns -= what.short_ns;
  from.waits -= what.waits;
}

absl::string_view CommOf(const char (&comm)[16]) { return {comm, strnlen(comm, sizeof comm)}; }

}  // namespace

std::map<std::string, uint64_t> WaitWatchCounters::ByName() const {
  return {{"records", records},
          {"without_stack", without_stack},
          {"without_waker_stack", without_waker_stack},
          {"late_stacks", late_stacks},
          {"unsure_times", unsure_times}};
}

void WaitWatch::NotePause(ProcessKey key, MonotonicTime requested, MonotonicTime ended) {
  main_loop_.Check();
  std::deque<Pause>& pauses = pauses_[key];
  // A pause that was asked for while the one before went on: threads may have stood still all the time.
  if (!pauses.empty() && requested <= pauses.back().ended) {
    pauses.back().requested = std::min(pauses.back().requested, requested);
    pauses.back().ended = std::max(pauses.back().ended, ended);
    return;
  }
  pauses.push_back({requested, ended});
  if (pauses.size() > kMaxPauses) pauses.pop_front();
}

// A thread that the runtime stops waits from some time behind the request on, until the pause is over. A wait that was
// there before, or goes on, is for something else.
bool WaitWatch::WasPaused(ProcessKey key, const wire_wait& wait) const {
  const auto found = pauses_.find(key);
  if (found == pauses_.end()) return false;
  const uint64_t running = wait.header.time_ns - std::min<uint64_t>(wait.header.time_ns, wait.runnable_ns);
  const uint64_t began = running - std::min<uint64_t>(running, wait.blocked_ns);
  return std::any_of(found->second.begin(), found->second.end(), [&](const Pause& pause) {
    if (began > pause.ended.ns || running < pause.requested.ns) return false;
    return began + kAroundPauseNs >= pause.requested.ns && running <= pause.ended.ns + kAroundPauseNs;
  });
}

void WaitWatch::Handle(const Process& process, const wire_wait& wait) {
  main_loop_.Check();
  const std::pair<ProcessKey, uint32_t> thread{process.key, wait.tid};
  if (const auto before = pending_.find(thread); before != pending_.end()) {
    Give(process.key, before->second, {});
    pending_.erase(before);
  }
  NoteTimes(process.key, wait);
  if ((wait.flags & kWaitUnmoved) == 0) standing_.erase(thread);
  if ((wait.flags & WIRE_WAIT_THREAD_ENDED) != 0) return;
  ++counters_.records;
  Pending pending{Untold(process.key, wait), WasPaused(process.key, wait), std::nullopt};
  if (pending.wait.blocked_weight == 0 && pending.wait.runnable_weight == 0) return;
  if (const auto standing = standing_.find(thread); standing != standing_.end()) {
    // A pause is over some time. If the thread still waits then, it waits for something else.
    if (standing->second.kind != WaitKind::kSuspended) pending.kind = standing->second.kind;
    Give(process.key, pending, standing->second.frames);
  } else if ((wait.flags & WIRE_WAIT_HAS_STACK) != 0) {
    pending_[thread] = pending;
  } else {
    Give(process.key, pending, {});
  }
}

wire_wait WaitWatch::Untold(ProcessKey key, const wire_wait& wait) {
  MonotonicTime& looked_at = threads_[key][wait.tid].looked_at;
  wire_wait rest = wait;
  if ((wait.flags & WIRE_WAIT_OPEN) != 0) {
    if (wait.blocked_weight != 0 || wait.runnable_weight != 0) looked_at = {wait.header.time_ns};
    return rest;
  }
  const uint64_t left = wait.header.time_ns - std::min<uint64_t>(wait.header.time_ns, looked_at.ns);
  rest.runnable_ns = std::min<uint64_t>(wait.runnable_ns, left);
  rest.blocked_ns = std::min<uint64_t>(wait.blocked_ns, left - rest.runnable_ns);
  if (rest.runnable_ns == 0) rest.runnable_weight = 0;
  if (rest.blocked_ns == 0) rest.blocked_weight = 0;
  return rest;
}

void WaitWatch::NoteTimes(ProcessKey key, const wire_wait& wait) {
  Known& known = threads_[key][wait.tid];
  ThreadTimes& times = known.now;
  if (times.seen.ns != wait.seen_ns) {
    // It is another thread of that number, or one that was seen anew. The untaken sums of the one before count on.
    Subtract(known.taken, times);
    times = {};
  }
  known.news = true;
  times.comm = std::string(CommOf(wait.comm));
  times.seen = {wait.seen_ns};
  times.until = {std::max<uint64_t>(times.until.ns, wait.header.time_ns)};
  // A look reports sums as of a moment just past. They may be ahead of those that a wait reports then.
  times.cpu_ns = std::max<uint64_t>(times.cpu_ns, wait.total_cpu_ns);
  times.blocked_ns = std::max<uint64_t>(times.blocked_ns, wait.total_blocked_ns);
  times.runnable_ns = std::max<uint64_t>(times.runnable_ns, wait.total_runnable_ns);
  times.short_ns = std::max<uint64_t>(times.short_ns, wait.total_short_ns);
  times.waits = std::max<uint64_t>(times.waits, wait.total_waits);
  times.ended = (wait.flags & WIRE_WAIT_THREAD_ENDED) != 0;
}

void WaitWatch::HandleStack(const Process& process, const wire_cpu_sample& sample, std::span<const FrameId> frames) {
  main_loop_.Check();
  const auto found = pending_.find(std::pair(process.key, sample.tid));
  if (found == pending_.end() || found->second.wait.header.time_ns != sample.header.time_ns) return;
  std::vector<FrameId> own(frames.begin(), frames.end());
  // The kernel leaves its scheduler's functions out of the stack of a thread that still waits.
  const bool open = (found->second.wait.flags & WIRE_WAIT_OPEN) != 0;
  if (!open && !TakeOffSwitch(own)) {
    ++counters_.late_stacks;
    own.clear();
  }
  const WaitKind kind = Give(process.key, found->second, own);
  if (open) standing_[found->first] = {std::move(own), kind};
  pending_.erase(found);
}

void WaitWatch::HandleWakerStack(const wire_cpu_sample& sample, std::span<const FrameId> frames) {
  main_loop_.Check();
  while (!wakers_.empty() &&
         (wakers_.size() >= kMaxWakers || wakers_.front().time_ns + kMaxWakerAgeNs < sample.header.time_ns)) {
    wakers_.pop_front();
  }
  Waker waker{sample.header.time_ns, sample.tid, {frames.begin(), frames.end()}, false, false};
  std::vector<absl::string_view> kernel;
  for (const FrameId id : frames) {
    const Frame& frame = frames_.at(id);
    if (frame.kind != FrameKind::kKernel) continue;
    kernel.push_back(frame.text);
    waker.kernel_is_named |= frame.named();
  }
  waker.by_interrupt = std::any_of(kernel.begin(), kernel.end(), IsInterruptEntry) || IsDeferredInterrupt(kernel);
  wakers_.push_back(std::move(waker));
}

bool WaitWatch::TakeOffSwitch(std::vector<FrameId>& frames) const {
  const auto kernel =
      std::find_if(frames.begin(), frames.end(), [&](FrameId id) { return frames_.at(id).kind == FrameKind::kKernel; });
  const auto scheduler =
      std::find_if(kernel, frames.end(), [&](FrameId id) { return IsScheduler(frames_.at(id).text); });
  if (scheduler == frames.end()) {
    // Without names of kernel functions this can't be told, so the kernel's order is relied on.
    const bool nameless = kernel != frames.end() && !frames_.at(*kernel).named();
    if (!nameless) return false;
    frames.erase(kernel, frames.end());
    return true;
  }
  frames.erase(scheduler, frames.end());
  return true;
}

const WaitWatch::Waker* WaitWatch::WakerOf(const wire_wait& wait) const {
  if (wait.woken_ns == 0) return nullptr;
  const auto first = std::lower_bound(wakers_.begin(), wakers_.end(), wait.woken_ns,
                                      [](const Waker& waker, uint64_t time) { return waker.time_ns < time; });
  for (auto waker = first; waker != wakers_.end() && waker->time_ns == wait.woken_ns; ++waker) {
    if (waker->tid == wait.waker_tid) return &*waker;
  }
  return nullptr;
}

// Before .NET 10 a thread that wants a monitor is in no method that says so. The thread that gives it is.
bool WaitWatch::LeavesMonitor(const Waker& waker) const {
  return std::any_of(waker.frames.begin(), waker.frames.end(),
                     [&](FrameId id) { return HasMethod(frames_.at(id).text, "System.Threading.Monitor.Exit"); });
}

WaitKind WaitWatch::KindOf(const Pending& pending, std::span<const FrameId> frames, const Waker* waker) const {
  std::vector<absl::string_view> kernel, managed;
  bool in_runtime = false;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const Frame& one = frames_.at(*frame);
    if (one.kind == FrameKind::kKernel) kernel.push_back(one.text);
    // The thread does not wait in a method that is suspended.
    if (IsManaged(one) && !IsAwaiter(one)) managed.push_back(one.text);
    in_runtime |= managed.empty() && one.kind == FrameKind::kNative && IsRuntime(one.module);
  }
  return KindOfWait({.syscall = pending.wait.syscall,
                     .kernel = kernel,
                     .managed = managed,
                     .suspended = pending.suspended,
                     .ended_by_monitor = waker != nullptr && !waker->by_interrupt && LeavesMonitor(*waker),
                     .cut = !frames.empty() && frames_.at(frames.front()).kind == FrameKind::kMark,
                     .in_runtime = in_runtime});
}

WaitKind WaitWatch::Give(ProcessKey key, const Pending& pending, std::span<const FrameId> frames) {
  const wire_wait& wait = pending.wait;
  ObservedWait observed;
  const Waker* const waker = WakerOf(wait);
  const FrameId unseen = MarkFrame("[stack not taken]");
  if (frames.empty()) {
    ++counters_.without_stack;
    frames = std::span(&unseen, 1);
    observed.kind = WaitKind::kOther;
  } else {
    observed.kind = pending.kind ? *pending.kind : KindOf(pending, frames, waker);
  }
  if (waker == nullptr && (wait.flags & WIRE_WAIT_HAS_WAKER_STACK) != 0) ++counters_.without_waker_stack;
  observed.process = key;
  observed.tid = wait.tid;
  observed.comm = CommOf(wait.comm);
  observed.ended = {wait.header.time_ns - std::min<uint64_t>(wait.header.time_ns, wait.runnable_ns)};
  observed.frames = frames;
  const bool outside = (wait.flags & WIRE_WAIT_WAKER_OUTSIDE) != 0;
  observed.by_interrupt =
      (waker != nullptr && waker->by_interrupt) || (wait.woken_ns != 0 && wait.waker_tid == 0 && !outside);
  // Without the kernel's functions a thread that an interrupt met would pass for one that ended the wait.
  if (!observed.by_interrupt && waker != nullptr && waker->kernel_is_named) {
    observed.waker_tgid = wait.waker_tgid;
    observed.waker_tid = wait.waker_tid;
    observed.waker_comm = CommOf(wait.waker_comm);
    observed.waker_frames = waker->frames;
  }
  if (wait.blocked_weight != 0) {
    observed.wait_ns = wait.blocked_ns;
    observed.stands_for = static_cast<double>(wait.blocked_weight) / WIRE_WAIT_ONE;
    on_wait_(observed);
  }
  const WaitKind kind = observed.kind;
  if (wait.runnable_weight == 0) return kind;
  observed.kind = WaitKind::kRunnable;
  observed.ended = {wait.header.time_ns};
  observed.wait_ns = wait.runnable_ns;
  observed.stands_for = static_cast<double>(wait.runnable_weight) / WIRE_WAIT_ONE;
  observed.waker_tgid = observed.waker_tid = 0;
  observed.waker_comm = {};
  observed.waker_frames = {};
  on_wait_(observed);
  return kind;
}

FrameId WaitWatch::MarkFrame(absl::string_view text) {
  return frames_.Intern(Frame{FrameKind::kMark, NameSource::kNone, std::string(text), "", ""});
}

void WaitWatch::Finish() {
  main_loop_.Check();
  for (const auto& [thread, pending] : pending_) Give(thread.first, pending, {});
  pending_.clear();
}

void WaitWatch::EndProgram(ProcessKey key) {
  main_loop_.Check();
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    if (pending->first.first == key) {
      Give(key, pending->second, {});
      pending_.erase(pending++);
    } else {
      ++pending;
    }
  }
  absl::erase_if(standing_, [&](const auto& entry) { return entry.first.first == key; });
  pauses_.erase(key);
}

void WaitWatch::End(ProcessKey key) {
  EndProgram(key);
  threads_.erase(key);
}

std::vector<ProcessKey> WaitWatch::processes() const {
  std::vector<ProcessKey> keys;
  for (const auto& [key, threads] : threads_) keys.push_back(key);
  return keys;
}

WaitWatch::Threads WaitWatch::TakeThreads(ProcessKey key, MonotonicTime from) {
  main_loop_.Check();
  Threads taken;
  const auto found = threads_.find(key);
  if (found == threads_.end()) return taken;
  std::map<uint32_t, Known>& threads = found->second;
  for (auto& [tid, known] : threads) {
    if (!std::exchange(known.news, false)) continue;
    ThreadTimes since = known.now;
    Subtract(since, known.taken);
    const uint64_t begin = known.taken.until.ns != 0 ? known.taken.until.ns : std::max(since.seen.ns, from.ns);
    known.taken = known.now;
    if (from.ns != 0 && since.cpu_ns + since.blocked_ns + since.runnable_ns > since.until.ns - begin + kMaxShiftNs) {
      ++counters_.unsure_times;
    } else {
      taken[tid] = std::move(since);
    }
  }
  const auto gone = [&](const ThreadTimes& times) { return times.ended || times.until.ns + kMaxSilenceNs < from.ns; };
  for (auto thread = threads.begin(); thread != threads.end();) {
    if (gone(thread->second.now)) standing_.erase(std::pair(key, thread->first));
    thread = gone(thread->second.now) ? threads.erase(thread) : std::next(thread);
  }
  if (threads.empty()) threads_.erase(found);
  return taken;
}

}  // namespace clrsampler
