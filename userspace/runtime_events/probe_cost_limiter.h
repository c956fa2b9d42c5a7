// Limits what probes cost each process: it says which sets of them have to be detached (probe_cost_bucket.h). Pure.
//
// A process has an equal part of its share for each kind of hooks. So a storm of compilations takes nothing from
// pauses. A set of probes is in a file. It is detached for all that map the file as soon as one of them has had its
// share, and until none has. Processes that are not followed run into the same probes, and the trap is paid for before
// any filter is asked. The file that they map is not known, so they count for every set of the kind.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_PROBE_COST_LIMITER_H_
#define CLRSAMPLER_RUNTIME_EVENTS_PROBE_COST_LIMITER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "os/clock.h"
#include "process/process.h"
#include "runtime_events/hook_part.h"
#include "runtime_events/probe_cost_bucket.h"

namespace clrsampler {

class HookSet;

class ProbeCostLimiter {
 public:
  // `share`: of one CPU, for each process; 0: no limit. `kinds`: how many kinds of hooks share it.
  ProbeCostLimiter(double share, int kinds) : share_(share), kinds_(std::max(kinds, 1)) {}

  bool limited() const { return share_ > 0; }

  // A process whose hooks are those of `set` from now on; nullptr: it has none. `starts` counts at the first call for
  // the process: it begins now.
  void Use(ProcessKey process, HookPart part, const HookSet* set, bool starts);
  void Forget(ProcessKey process);

  // Hits until `time` have cost that much. true: its set has to be detached.
  bool Spend(ProcessKey process, HookPart part, MonotonicTime time, uint64_t cost_ns);
  // Spends for a process that is not followed, by its thread group in the initial pid namespace. true: all sets of
  // `part` have to.
  bool SpendOther(uint32_t tgid, HookPart part, MonotonicTime time, uint64_t cost_ns);

  // Whether some process has not enough left for the set to be there.
  bool MustDetach(const HookSet* set, HookPart part, MonotonicTime now);

 private:
  // The most processes that are not followed. Beyond, those who have something left begin anew.
  static constexpr size_t kMaxOthers = 4096;

  struct Allowance {
    const HookSet* set = nullptr;
    ProbeCostBucket bucket;
  };
  // Watched stretches stand for the time in which probes are detached, so many short stretches say more than a long
  // one.
  static constexpr uint64_t kEstimatedSecondsAtOnce = 1;

  ProbeCostBucket BucketOf(HookPart part, bool starts) const {
    return {share_ / kinds_, starts, IsEstimated(part) ? kEstimatedSecondsAtOnce : ProbeCostBucket::kSecondsAtOnce};
  }

  const double share_;
  const int kinds_;
  absl::flat_hash_map<ProcessKey, std::array<Allowance, kHookParts.size()>> allowances_;
  absl::flat_hash_map<std::pair<uint32_t, HookPart>, ProbeCostBucket> others_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_PROBE_COST_LIMITER_H_
