// Reads all that the kernel tells out of its rings, and holds it until its turn: samples, what happens to processes,
// and what hooks in runtimes report.
//
// Things that may be gone in a moment are looked at as they arrive: a process that nobody has heard of, code that may
// be freed.
#ifndef CLRSAMPLER_PIPELINE_INTAKE_H_
#define CLRSAMPLER_PIPELINE_INTAKE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "capture/event_stream.h"
#include "clr/memory/memory_methods.h"
#include "os/clock.h"
#include "pipeline/async_callers.h"
#include "pipeline/event_budget.h"
#include "pipeline/record_options.h"
#include "pipeline/sample_unwinder.h"
#include "pipeline/targets.h"
#include "pipeline/thread_contexts.h"
#include "process/process_table.h"
#include "profile/account.h"
#include "profile/hold_queue.h"
#include "runtime_events/runtime_watch.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "unwind/raw_stack.h"

namespace clrsampler {

// A sample that waits for its names.
struct HeldSample {
  std::vector<uint64_t> record;  // struct wire_cpu_sample and what follows it, aligned
  std::optional<RawStack> raw;   // a view of that
  EarlyStack early;
  bool of_clock = false;  // a CPU sample; else the stack of a thread that ran into a hook
};
using HeldItem = std::variant<std::unique_ptr<HeldSample>, SideBandEvent, RuntimeItem, wire_wait, wire_thread>;

// Main loop only. Borrows what it is given.
class Intake {
 public:
  struct Parts {
    EventStream& events;
    Targets& targets;
    ProcessTable& table;
    SampleUnwinder& unwinder;
    MemoryMethods& memory;
    RuntimeWatch* hooks;  // nullptr: there are none
    AsyncCallers* async;  // nullptr: not asked for
    ThreadContexts& threads;
    Account& account;
    Notices& notices;
  };
  // Records of stacks that wait take at most so many bytes. A sample that comes then is lost, as "queue_full"; an event
  // of hooks is dropped. 64 MiB are ten seconds of four busy CPUs at 99 Hz, with the largest stacks. A run with
  // RecordOptions::ring_bytes has as much more.
  static constexpr size_t kQueuedBytes = 64 << 20;

  Intake(const Parts& parts, SamplesKept kept, EventBudget hook_events = {}, size_t max_queued_bytes = kQueuedBytes)
      : parts_(parts), kept_(kept), hook_events_(hook_events), max_queued_bytes_(max_queued_bytes) {}

  // Takes all that is there.
  void Drain();

  // As HoldQueue's.
  template <typename Visitor>
  void PopUntil(MonotonicTime horizon, Visitor&& visit) {
    queue_.PopUntil(horizon, [&](MonotonicTime time, HeldItem& item) {
      if (!visit(time, std::as_const(item))) return false;
      if (auto* sample = std::get_if<std::unique_ptr<HeldSample>>(&item)) {
        if ((*sample)->of_clock) waiting_sample_bytes_ -= BytesOf(**sample);
        queued_bytes_ -= BytesOf(**sample);
        if (spare_.size() < kMaxSpare) spare_.push_back(std::move(*sample));
      }
      return true;
    });
  }
  MonotonicTime OldestOr(MonotonicTime time) const { return queue_.OldestOr(time); }
  // The number of news of processes, and of methods that were compiled, that have been taken.
  uint64_t news() const { return news_; }
  // How much of the room for stacks that wait is taken by samples of the CPUs' clocks, 0 to 1. A flood of hooks does
  // not count.
  double queue_fill() const {
    return static_cast<double>(waiting_sample_bytes_) / static_cast<double>(max_queued_bytes_);
  }
  // Samples for which there was no room while samples took half of it or more, of the whole run. Where stacks of hooks
  // fill it, fewer samples would leave no more room.
  uint64_t samples_dropped() const { return samples_dropped_; }
  // Records of hooks, with their stacks, without waits: those that came while too much waited, and those beyond the
  // host's budget.
  uint64_t runtime_events_dropped() const { return runtime_events_dropped_; }
  uint64_t runtime_events_limited() const { return runtime_events_limited_; }
  // Waits, and the stacks of waits and of their wakers, that came while too much waited, or beyond that budget.
  uint64_t wait_records_dropped() const { return wait_records_dropped_; }
  uint64_t wait_stacks_dropped() const { return wait_stacks_dropped_; }
  // How full the samples' ring was at most since the last call, 0 to 1.
  double TakeRingFill() { return std::exchange(ring_fill_, 0); }

 private:
  // Samples that have left lend their memory to those that come: most have the same size. An iteration brings ten for
  // each busy CPU at 99 Hz.
  static constexpr size_t kMaxSpare = 128;

  static size_t BytesOf(const HeldSample& sample) { return sample.record.size() * sizeof(uint64_t); }

  void TakeEvent(SideBandEvent event);
  void NoteThread(const SideBandEvent& event);
  void TakeRecord(std::span<const std::byte> record);
  void TakeHookStack(std::span<const std::byte> record);
  void TakeStack(std::span<const std::byte> record);
  void TakeThread(std::span<const std::byte> record);
  void TakeWait(std::span<const std::byte> record);
  template <typename Event>
  void TakeRuntimeEvent(std::span<const std::byte> record);
  // False: the event is counted as left out. `dropped` counts those that came while too much waited, `limited` those
  // beyond the budget.
  bool HasRoomForHookEvent(MonotonicTime time, uint32_t weight, uint64_t& dropped, uint64_t& limited);
  bool HasRoomForHookEvent(MonotonicTime time, uint32_t weight) {
    return HasRoomForHookEvent(time, weight, runtime_events_dropped_, runtime_events_limited_);
  }
  void Lose(absl::string_view reason);

  const Parts parts_;
  const SamplesKept kept_;
  EventBudget hook_events_;
  const size_t max_queued_bytes_;
  HoldQueue<HeldItem> queue_;
  std::vector<std::unique_ptr<HeldSample>> spare_;
  size_t queued_bytes_ = 0;          // of stacks in the queue
  size_t waiting_sample_bytes_ = 0;  // of these: samples of the CPUs' clocks
  uint64_t samples_dropped_ = 0;
  uint64_t runtime_events_dropped_ = 0;
  uint64_t runtime_events_limited_ = 0;
  uint64_t wait_records_dropped_ = 0;
  uint64_t wait_stacks_dropped_ = 0;
  uint64_t news_ = 0;
  double ring_fill_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_INTAKE_H_
