// Plants hooks into .NET runtimes as they show up: one set of probes for each file, for all processes that map it, gone
// with the last of them. Where they go: clr/hooks. What they report: pause_watch.h, jit_watch.h.
//
// What they cost a process may be limited (hook_budget.h). A process that has had its share goes without for a while,
// and so do all that map the same file: first without those hooks that have cost more, pauses or compilations, then
// without the others too if they alone are more than is paid for.
#ifndef CLRSAMPLER_PIPELINE_HOOK_PLANTER_H_
#define CLRSAMPLER_PIPELINE_HOOK_PLANTER_H_

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
#include "clr/hooks/hook_locator.h"
#include "clr/runtime_discovery.h"
#include "clrsampler/wire.h"
#include "os/unique_fd.h"
#include "pipeline/hook_budget.h"
#include "process/image_files.h"
#include "process/process.h"
#include "profile/jit_start.h"
#include "status/notices.h"
#include "symbols/debug_file.h"

namespace clrsampler {

struct HookPlanterOptions {
  bool suspensions = false;  // SuspendEE, RestartEE and collections
  bool resumed = true;       // also where RestartEE returns
  bool compilations = false;
  // Plants one hook; it stays until the descriptor is closed (capture/sampler.h).
  std::function<absl::StatusOr<UniqueFd>(wire_hook hook, bool member, const std::string& path, uint64_t file_offset)>
      attach;
  // A program that compiles more than a thousand methods a second, second after second, pays for one probe a
  // compilation instead of two: that at the beginning rests as soon as the stack is known to tell the same
  // (profile/jit_start.h). Compilations that an exception ends are not seen meanwhile.
  bool rest_in_storms = false;
  bool say_refusals = true;  // as notices: for runs whose purpose they are
  double share = 0;          // of one CPU that hooks may cost a process; 0: no limit
  MonotonicTime began;       // of watching: a process that compiles only since then is one that starts
  // What a trap costs here, in nanoseconds (capture/trap_cost.h). Called in a thread of its own, once, and only where
  // hooks are hit often enough for it to matter.
  std::function<absl::StatusOr<uint64_t>()> measure_trap;
};

enum class HookPart : uint8_t { kSuspensions, kCompilations };

struct HookPlanterCounters {
  uint64_t images_hooked = 0;
  uint64_t images_refused = 0;  // in part or altogether
  uint64_t rests = 0;           // times that the probe at the beginning of compilations was taken out
  uint64_t budget_rests = 0;    // times that a process had had its share
  uint64_t rested_ns = 0;       // for which processes went without their hooks since then, added up
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
  void Look(const Process& process);

  // Why nothing of the process is seen; OK: the hooks are planted.
  absl::Status SeesSuspensions(ProcessKey key) const;
  absl::Status SeesCompilations(ProcessKey key) const;
  // Whether each of its compilations is seen at this moment.
  bool TellsOfMethods(ProcessKey key) const;

  // `hits` of the process's hooks have cost it what hits cost, and `more_ns`; the last was at `time`. false: they are
  // not to be used, since the process is to go without such hooks, and the probes may be half gone.
  bool Admit(ProcessKey key, HookPart part, MonotonicTime time, uint64_t hits, uint64_t more_ns);
  // What has begun to rest since the last call.
  std::vector<std::pair<ProcessKey, HookPart>> TakeRested() { return std::exchange(rested_, {}); }
  // To be called often: hooks that may come back do.
  void Tick(MonotonicTime now);

  // That many compilations of the process have ended since the last call; `time` is the last one's.
  void NoteCompiled(ProcessKey key, MonotonicTime time, uint32_t count);
  // Of the process's runtime; nullptr: none is hooked.
  JitStart* StartOf(ProcessKey key) const;

  void Forget(ProcessKey key);
  // Takes all hooks out; returns when they are gone.
  void Finish();

  const HookPlanterCounters& counters() const { return counters_; }

 private:
  struct HookedImage;
  struct Target {
    uint64_t mappings_seen = 0;  // generation
    uint32_t exec_count = 0;
    std::shared_ptr<HookedImage> runtime;
    std::shared_ptr<HookedImage> jit;  // the same in a single-file program
    HookBudget budget;
    std::array<uint64_t, 2> spent_ns{};  // by HookPart: since all was left, or since one of them rests
    MonotonicTime rests_since;

    const std::shared_ptr<HookedImage>& Of(HookPart part) const {
      return part == HookPart::kSuspensions ? runtime : jit;
    }
  };

  // What is in an image: a single-file host has both.
  struct Parts {
    bool runtime = false;
    bool jit = false;
    bool by_symbols = false;  // those of a separate file count, too
  };
  std::shared_ptr<HookedImage> Hook(const Process& process, const Mapping& mapping, Parts parts,
                                    absl::string_view version);
  void Plant(const Process& process, const Mapping& mapping, Parts parts, HookedImage& hooked);
  absl::Status PlantSuspensions(const RuntimeHooks& hooks, const std::string& path, HookedImage& hooked);
  absl::Status PlantCompilations(const RuntimeHooks& hooks, Parts parts, const std::string& path, HookedImage& hooked);

  absl::Status Attach(wire_hook hook, bool member, uint64_t offset, const std::string& path, HookedImage& hooked);

  void RestOrReturn(HookedImage& hooked, bool storm);
  void Charge(Target& target, HookPart part, MonotonicTime time, uint64_t hits, uint64_t more_ns);
  // It has nothing left.
  void GoWithout(Target& target, MonotonicTime time);
  bool Rest(const std::shared_ptr<HookedImage>& hooked);  // false: it can't at this moment
  void Return(HookedImage& hooked);

  const HookPlanterOptions options_;
  RuntimeDiscovery& runtimes_;
  ImageFiles& images_;
  Notices& notices_;
  const Clock& clock_;
  DebugFileFinder debug_files_;
  absl::flat_hash_map<ProcessKey, Target> targets_;
  absl::flat_hash_map<const ImageFile*, std::weak_ptr<HookedImage>> hooked_;  // each holds its ImageFile
  HookPlanterCounters counters_;
  std::vector<std::pair<ProcessKey, HookPart>> rested_;
  MonotonicTime last_tick_;
  uint64_t hits_ = 0;  // until the trap is measured
  uint64_t trap_ns_;
  std::future<absl::StatusOr<uint64_t>> measuring_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_HOOK_PLANTER_H_
