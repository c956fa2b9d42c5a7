// The work of .NET runtimes while they are sampled, by hooks in them: the one place that the recorder's loop talks to.
//
//   HookPlanter        plants the hooks
//   PauseWatch         pauses, and who delays them
//   JitWatch           compilations
//   AllocationWatch    allocated memory
//   ExceptionWatch     exceptions
//   RuntimeActivity    what a thread did at the time of a sample, for frames like "[gc gen1 blocking]"
//
// An event is given to Arrived as it leaves the ring, waits in the recorder's queue, and is given to Handle in its
// turn, between the samples before and after it.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_RUNTIME_WATCH_H_
#define CLRSAMPLER_RUNTIME_EVENTS_RUNTIME_WATCH_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "process/per_process.h"
#include "profile/runtime_activity.h"
#include "runtime_events/allocation_watch.h"
#include "runtime_events/exception_watch.h"
#include "runtime_events/hook_part.h"
#include "runtime_events/hook_planter.h"
#include "runtime_events/jit_watch.h"
#include "runtime_events/pause_watch.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct RuntimeWatchOptions {
  HookPlanterOptions hooks;
  bool roles = false;       // RolesOf will be asked
  bool jit_stacks = false;  // compilations come with stacks
  NameStyle names = NameStyle::kShort;
  std::function<void(const ObservedPause&)> on_pause;
  std::function<void(const RuntimeEvent&)> on_event;  // each that pauses are made of; may be empty
  PauseWatch::OnCollection on_collection;
  JitWatch::Callbacks jit;
  AllocationWatch::Callbacks allocations;
  // Gives the factor for the stacks of a process that came since the last call: behind its last one, and where
  // PublishAllocationFactors asks for it.
  std::function<void(ProcessKey, double factor)> on_allocation_factor;
  ExceptionWatch::Callbacks exceptions;
  // The same of exceptions.
  std::function<void(ProcessKey, double factor)> on_exception_factor;
  // CaptureControl::HookHitsMissed; asked some times a second of a process whose pause lasts, and at the end of one
  // that throws; may be empty.
  std::function<uint32_t(uint32_t tgid)> hits_missed;
  // CaptureControl::ReadAllocationSum; called at the end of a process that allocates; may be empty.
  std::function<void(uint32_t tgid)> read_allocation_sum;
};

using RuntimeItem = std::variant<wire_runtime_event, CompiledEvent, AllocationEvent, ExceptionEvent>;

// Main loop only. Borrows what it is given.
class RuntimeWatch {
 public:
  RuntimeWatch(RuntimeWatchOptions options, RuntimeDiscovery& runtimes, ImageFiles& images, Notices& notices,
               Symbolizer& symbolizer, FrameTable& frames, const Clock& clock);

  // To be called often: plants hooks when a runtime has shown up in the process.
  void HookRuntimeOf(const Process& process) { planter_.HookRuntimeOf(process); }
  void Tick(MonotonicTime now);
  // HookPlanter::NoteThread.
  void NoteThread(ProcessKey key, uint32_t tid, bool ends);
  // In its turn: all that the thread reported has been handled.
  void EndThread(ProcessKey key, uint32_t tid);
  absl::Status CheckSuspensions(ProcessKey key) const { return planter_.CheckSuspensions(key); }
  absl::Status CheckCompilations(ProcessKey key) const { return planter_.CheckCompilations(key); }
  absl::Status CheckAllocations(ProcessKey key) const { return planter_.CheckAllocations(key); }
  absl::Status CheckExceptions(ProcessKey key) const { return planter_.CheckExceptions(key); }
  bool ReportsMethods(ProcessKey key) const { return planter_.ReportsMethods(key); }

  // nullopt: it has no meaning, since others around it are missing.
  std::optional<RuntimeItem> Arrived(const Process& process, const wire_runtime_event& event);
  std::optional<RuntimeItem> Arrived(const Process& process, const wire_compiled& event);
  std::optional<RuntimeItem> Arrived(const Process& process, const wire_allocation& event);
  std::optional<RuntimeItem> Arrived(const Process& process, const wire_exception& event);
  void Handle(const Process& process, const RuntimeItem& item);
  // An event of that time is left out, and may be the end of what is under way. No other may come for long.
  void NoteLeftOut(const Process& process, HookPart part, MonotonicTime time);
  // PauseWatch's.
  bool LacksOnlyItsEnd(uint32_t tgid) const { return pauses_.LacksOnlyItsEnd(tgid); }

  // Whether a sample that leaves the ring now may fall between a request and its stop.
  bool MayBeBlamed(uint32_t tgid) const { return pauses_.MayBeBlamed(tgid); }
  // In their turn; PauseWatch::Sampled.
  void Sampled(const Process& process, const wire_cpu_sample& sample, std::span<const FrameId> frames,
               std::span<const FrameId> written) {
    pauses_.Sampled(process, sample, frames, written);
  }
  void CompiledStack(const Process& process, const wire_cpu_sample& sample, std::span<const FrameId> frames) {
    jit_.HandleStack(process, sample, frames);
  }
  void AllocationStack(const Process& process, const wire_cpu_sample& sample, std::span<const FrameId> frames) {
    allocations_.HandleStack(process.key, sample, frames);
  }
  void ExceptionStack(const Process& process, const wire_cpu_sample& sample, std::span<const FrameId> frames) {
    exceptions_.HandleStack(process.key, sample, frames);
  }
  PausePhase PhaseOf(ProcessKey key, MonotonicTime time) {
    CutAt(key, time);
    return pauses_.PhaseOf(key);
  }
  std::optional<MonotonicTime> PausedSince(ProcessKey key, MonotonicTime time) {
    CutAt(key, time);
    return pauses_.PausedSince(key, time);
  }

  // The frame that says what the runtime did for the sampled thread, and where it belongs in `frames` (outermost
  // first): behind the managed method that made the runtime do so.
  struct Role {
    FrameId frame = 0;
    size_t at = 0;
    RuntimeRoleKind kind = RuntimeRoleKind::kCompiling;
  };
  std::optional<Role> RoleOf(const Process& process, const wire_cpu_sample& sample, std::span<const FrameId> frames);

  // Nothing from before this time will be asked.
  void DropBefore(MonotonicTime time);
  // Gives away all allocations of a process that has ended, while it still is in the table of processes.
  void EndAllocations(ProcessKey key);
  // Its program is over. All that waits is given away, so names must still be known.
  void End(ProcessKey key);
  // Sampling ends now. Finish is called once what came before has been handled.
  void StopsSampling();
  // Publishes the factors of all processes: a stretch of time ends, a window.
  void PublishAllocationFactors();
  // Reports what is not complete. The hooks stay until this object goes: for that the kernel takes 0.2 s, and a result
  // need not wait for it.
  void Finish();

  std::map<std::string, uint64_t> PauseCounts() const;  // as --stats writes them; empty without such hooks
  std::map<std::string, uint64_t> JitCounts() const;
  std::map<std::string, uint64_t> AllocationCounts() const;
  std::map<std::string, uint64_t> ExceptionCounts() const;
  // By the type's name: how often exceptions were thrown again, seen or not; of processes that are done with.
  std::map<std::string, uint64_t> rethrown() const;

 private:
  // Hits that a process's hooks had.
  struct Missed {
    uint32_t arrived = 0, handled = 0;  // that were not sent, as of the last event
    uint32_t asked = 0;                 // the same, as of the last question
    uint32_t at_end = 0;                // the same, when the process or the recording ended
    // That came and were left out, since the last event of the part.
    std::array<uint32_t, kHookParts.size()> left_out{};
    bool met = false;  // an event of it has come
    HookPart last{};   // of that event
  };

  // By wire_runtime_event::missed: where others are missing before an event, what was under way has ended at a time
  // that nobody knows.
  // How many more they are.
  uint32_t NoteMissedAtArrival(const Process& process, HookPart part, uint32_t missed);
  void NoteMissedAtHandling(const Process& process, uint32_t missed);
  // HookPlanter::Admit.
  bool Admit(const Process& process, HookPart part, MonotonicTime time, uint64_t hits, uint64_t more_ns);
  // Where hooks were detached, what is under way ends at a time that nobody knows. `cause`: the process
  // that had its share; nullptr: one that is not recorded.
  void NoteRested(MonotonicTime time, const Process* cause);
  // Nothing is known any more from that time on of what is under way.
  void CutFrom(ProcessKey key, HookPart part, MonotonicTime time);
  void CutAt(ProcessKey key, MonotonicTime time);
  void CutPausesWhoseEndsWereNotSent(MonotonicTime now);
  std::vector<ProcessKey> AllocatingProcesses() const;
  void PublishAllocationFactor(ProcessKey key, bool ends);
  void PublishExceptionFactor(ProcessKey key);
  // Asks the kernel for what no event of the process will tell any more: hits that were not sent, bytes allocated.
  void AskForTheRest(ProcessKey key);
  void CountExceptionsBehindTheLast(ProcessKey key);
  void AddPlanterCounts(const HookPlanterCounters::Detachments& detachments,
                        std::map<std::string, uint64_t>& counts) const;
  FrameId RoleFrame(const char* text);
  std::optional<Role> RoleByStack(std::span<const FrameId> frames);
  size_t PlaceOf(std::span<const FrameId> frames, bool compiling) const;

  RuntimeWatchOptions options_;
  Notices& notices_;
  FrameTable& frames_;
  HookPlanter planter_;
  PauseWatch pauses_;
  JitWatch jit_;
  AllocationWatch allocations_;
  ExceptionWatch exceptions_;
  std::map<std::string, double> rethrown_;
  double estimated_thrown_ = 0;  // of processes that are done with
  double estimated_bytes_ = 0;   // of processes that are done with: what they have allocated, seen or not
  PerProcess<RuntimeActivity> activities_;
  PerProcess<Missed> missed_;
  MonotonicTime newest_ = MonotonicTime::Min();  // event that was taken
  MonotonicTime ticked_ = MonotonicTime::Min();
  MonotonicTime asked_ = MonotonicTime::Min();  // for hits that were not sent
  // From each of these times on events are missing. They are still to be handled, the earliest first.
  absl::flat_hash_map<std::pair<ProcessKey, HookPart>, std::deque<MonotonicTime>> cuts_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_RUNTIME_WATCH_H_
