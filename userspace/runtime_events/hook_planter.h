// Plants hooks into .NET runtimes as they show up: one set of probes of each kind for each file, for all processes that
// map it, gone with the last of them. Where they go: clr/hooks. The readers of their reports: pause_watch.h,
// jit_watch.h.
//
// Their cost for a process may be limited: a set is detached while one of those that run into it has had its share
// (probe_cost_limiter.h).
#ifndef CLRSAMPLER_RUNTIME_EVENTS_HOOK_PLANTER_H_
#define CLRSAMPLER_RUNTIME_EVENTS_HOOK_PLANTER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "capture/capture_control.h"
#include "clr/hooks/hook_locator.h"
#include "clr/runtime_discovery.h"
#include "os/clock.h"
#include "process/image_files.h"
#include "process/mappings_pace.h"
#include "process/per_process.h"
#include "process/process.h"
#include "profile/jit_start.h"
#include "runtime_events/compilation_rate.h"
#include "runtime_events/hook_coverage.h"
#include "runtime_events/hook_part.h"
#include "runtime_events/hook_set.h"
#include "runtime_events/probe_cost_limiter.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbols/debug_file.h"

namespace clrsampler {

struct HookPlanterOptions {
  bool suspensions = false;  // HookPart::kSuspensions
  bool resumed = true;       // also where RestartEE returns
  bool compilations = false;
  bool allocations = false;
  bool exceptions = false;
  AttachHookFunction attach;
  // A program that compiles more than a thousand methods a second, second after second, pays for one probe a
  // compilation instead of two. The one at the beginning is left out as soon as the stack is known to tell the same
  // (profile/jit_start.h). Compilations that an exception ends are not seen meanwhile.
  bool drop_entry_probe_in_storms = false;
  bool say_refusals = true;  // as notices: for runs whose purpose they are
  double cost_share = 0;     // of one CPU that hooks may cost a process; 0: no limit
  MonotonicTime began;       // of watching: a process that compiles only since then is one that starts
  // Measures the cost of a trap here, in nanoseconds (capture/trap_cost.h). Called in a thread of its own, once, and
  // only where hooks are hit often enough for it to matter.
  std::function<absl::StatusOr<uint64_t>()> measure_trap;
  // CaptureControl::HookHitsOfOthers; asked some times a second where there is a limit.
  std::function<std::vector<HitsOfOthers>()> hits_of_others;
  // The time of a process, user and system; nullopt: it has ended.
  std::function<std::optional<uint64_t>(uint32_t tgid)> process_cpu_ns;
  // Bytes that the threads of a process have allocated, as the runtime counts them; nullopt: that can't be read.
  std::function<std::optional<ThreadCounts>(ProcessKey)> allocated_bytes;
  // Whether what probes of estimated parts don't see in the process is of interest; empty: of all.
  std::function<bool(const Process&)> selects;
  Tape* tape = nullptr;  // has the answers where there is one

  bool Wants(HookPart part) const {
    switch (part) {
      case HookPart::kSuspensions:
        return suspensions;
      case HookPart::kCompilations:
        return compilations;
      case HookPart::kAllocations:
        return allocations;
      case HookPart::kExceptions:
        return exceptions;
    }
    return false;
  }
};

struct HookPlanterCounters {
  uint64_t images_hooked = 0;
  uint64_t images_refused = 0;  // in part or altogether
  uint64_t left_out = 0;        // times that the probe at the beginning of compilations was taken out
  // Times that a process had had its share, and for how long processes went without some of their hooks since then,
  // added up; of allocations apart, since these are estimated then.
  struct Detachments {
    uint64_t times = 0;
    uint64_t detached_ns = 0;
  };
  Detachments detachments, estimated_detachments;
  uint64_t counted_bytes = 0;   // that were allocated meanwhile, as the runtime counted them
  uint64_t not_admitted = 0;    // hits that came meanwhile
  uint64_t while_planting = 0;  // hits of the first probes of a file, before the last was there
};

// Main loop only. Borrows what it is given.
class HookPlanter {
 public:
  HookPlanter(HookPlanterOptions options, RuntimeDiscovery& runtimes, ImageFiles& images, Notices& notices,
              const Clock& clock);
  ~HookPlanter();

  // To be called often: plants hooks when a runtime has shown up in the process.
  void HookRuntimeOf(const Process& process);

  // Why nothing of the process is seen; OK: the hooks are planted.
  absl::Status CheckSuspensions(ProcessKey key) const { return Check(key, HookPart::kSuspensions); }
  absl::Status CheckCompilations(ProcessKey key) const { return Check(key, HookPart::kCompilations); }
  absl::Status CheckAllocations(ProcessKey key) const { return Check(key, HookPart::kAllocations); }
  absl::Status CheckExceptions(ProcessKey key) const { return Check(key, HookPart::kExceptions); }
  // Whether SuspendEE and RestartEE are seen to return, beside being called.
  bool SeesReturns(ProcessKey key) const;
  // Whether each of its compilations is seen at this moment.
  bool ReportsMethods(ProcessKey key) const;
  // An event that began before may lack a part.
  MonotonicTime SeesAllSince(ProcessKey key, HookPart part) const;

  // Types of objects that were allocated before this are not known; Max: none is.
  MonotonicTime SeesTypesSince(ProcessKey key) const;
  // Counts the unseen up to this moment, for the next TakeWhole. To be called before that, and when sampling ends.
  void NoteUnseen();
  // A thread of the process begins or ends.
  void NoteThread(ProcessKey key, uint32_t tid, bool ends);
  // All that hooks of an estimated part would have counted: they have seen `seen` in so many hits, since the last call.
  // `ends`: there is no next one.
  HookCoverage::Whole TakeWhole(ProcessKey key, HookPart part, uint64_t seen, uint64_t hits, bool ends);
  // Those whose hooks of the part are there, or were.
  std::vector<ProcessKey> ProcessesWith(HookPart part) const;

  // `hits` of the process's hooks have cost it what hits cost, and `more_ns`; the last was at `time`. false: they are
  // not to be used, since some of the probes may be missing.
  bool Admit(ProcessKey key, HookPart part, MonotonicTime time, uint64_t hits, uint64_t more_ns);

  // A set that was detached.
  struct Detached {
    HookPart part;
    uint32_t cause;                     // tgid of the process that had its share
    std::vector<ProcessKey> processes;  // that go without
  };
  // Since the last call.
  std::vector<Detached> TakeDetached() { return std::exchange(detached_, {}); }
  // To be called often: hooks that may come back do.
  void Tick(MonotonicTime now);

  // That many compilations of the process have ended since the last call; `time` is the last one's.
  void NoteCompiled(ProcessKey key, MonotonicTime time, uint32_t count);
  // The start of the process's runtime; nullptr: none is hooked.
  JitStart* StartOf(ProcessKey key) const;

  // Takes all hooks out; returns when they are gone.
  void Finish();

  const HookPlanterCounters& counters() const { return counters_; }

 private:
  // Those of one kind in one file. A collector in a library of its own has its runtime beside it, which stops threads.
  struct Hooked {
    std::shared_ptr<const ImageFile> image;
    std::shared_ptr<const ImageFile> beside;  // nullptr: there is none
    std::unique_ptr<HookSet> set;             // nullptr: nothing was planted
    absl::Status status;                      // why; or why it never comes back
    bool by_symbols = false;                  // which alone name its functions; those of a separate file count, too
    bool sees_returns = false;                // of SuspendEE and RestartEE
    bool sees_types = false;                  // of allocated objects
    uint64_t beyond_ns = 0;                   // what a hit costs beyond the trap; 0: what one of its kind does
    uint32_t exhausted_by = 0;  // it is to be detached, since this process has had its share; 0: it is not
    // The start of a compiler.
    JitStart start;
    CompilationRate rate;
  };
  struct ProcessState {
    MappingsPace look;
    uint32_t exec_count = 0;
    std::array<std::shared_ptr<Hooked>, kHookParts.size()> hooked;
    bool selected = true;            // HookPlanterOptions::selects
    bool has_other_runtime = false;  // than the one beside the collector whose suspensions are noted
    std::array<HookCoverage, kHookParts.size()> coverage;  // of estimated parts
  };

  // The hooks to be planted in an image: a single-file host has all of them.
  struct Wanted {
    std::array<bool, kHookParts.size()> parts{};
    bool of_runtime = false;          // it has the runtime's functions
    const Mapping* beside = nullptr;  // it is a collector in a library of its own, of the runtime there
  };
  bool Wants(HookPart part) const { return options_.Wants(part); }
  int KindsWanted() const;
  void Hook(const Process& process, const Mapping& mapping, const Wanted& wanted, absl::string_view version,
            ProcessState& state);
  std::shared_ptr<Hooked> Known(const ImageFile& image, HookPart part) const;
  using Fresh = std::array<Hooked*, kHookParts.size()>;  // nullptr: not that part
  void Plant(const Process& process, const Mapping& mapping, const Wanted& wanted, const Fresh& fresh);
  absl::StatusOr<std::vector<HookPlace>> SuspensionPlaces(const RuntimeHooks& hooks, const std::string& path,
                                                          Hooked& hooked);
  absl::StatusOr<std::vector<HookPlace>> PlacesOf(HookPart part, const RuntimeHooks& hooks, const ElfImage& elf,
                                                  bool of_runtime, Hooked& hooked);
  // Has suspensions of the runtime noted, for types. Without them there are no types, and a notice.
  void AddNotedSuspensions(const RuntimeHooks& hooks, const std::shared_ptr<const OpenedFile>& file, Hooked& hooked);
  void AddNotedSuspensionsBeside(const Process& process, const Mapping& runtime, Hooked& hooked);
  void SayNoTypes(const Hooked& hooked, const absl::Status& status);

  Hooked* HookedOf(ProcessKey key, HookPart part) const;
  absl::Status Check(ProcessKey key, HookPart part) const;
  template <typename Function>
  void ForEachPlanted(Function&& function) const;  // (Hooked&, HookPart), also of detached ones

  void Detach(Hooked& hooked, HookPart part, uint32_t cause, MonotonicTime time);
  void Reattach(Hooked& hooked, HookPart part);
  void NoteCoverage(const Hooked* hooked, HookPart part, MonotonicTime now);
  template <typename Predicate>
  std::vector<ProcessKey> CountedProcesses(Predicate&& is_wanted) const;
  template <typename Predicate>
  void NoteCounts(HookPart part, Predicate&& is_wanted);  // (const HookCoverage&, const Hooked* of the process)
  void ReadCounts(ProcessKey key);
  void NoteCountsOf(const Hooked& hooked, HookPart part);
  void NoteCountsDue(MonotonicTime now);
  void ChargeOthers(MonotonicTime now);
  void TakeMeasured();
  // `hooked`: whose hits they are; nullptr: not known.
  uint64_t CostNs(HookPart part, uint64_t hits, const Hooked* hooked) const;

  const HookPlanterOptions options_;
  RuntimeDiscovery& runtimes_;
  ImageFiles& images_;
  Notices& notices_;
  const Clock& clock_;
  DebugFileFinder debug_files_;
  PerProcess<ProcessState> states_;
  // Each holds its ImageFile.
  absl::flat_hash_map<std::pair<const ImageFile*, HookPart>, std::weak_ptr<Hooked>> hooked_;
  ProbeCostLimiter limiter_;
  HookPlanterCounters counters_;
  std::vector<Detached> detached_;
  MonotonicTime last_tick_ = MonotonicTime::Min(), others_asked_ = MonotonicTime::Min();
  MonotonicTime counts_paid_ = MonotonicTime::Min();  // what was spent on reading counts is made up for by then
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint64_t> hits_of_others_;  // at the last look, by wire_hook_other
  uint64_t hits_ = 0;                                                            // until the trap is measured
  uint64_t trap_ns_;
  std::future<absl::StatusOr<uint64_t>> measuring_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_HOOK_PLANTER_H_
