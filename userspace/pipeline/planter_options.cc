#include "pipeline/planter_options.h"

#include <optional>
#include <string>

#include "capture/trap_cost.h"
#include "clr/memory/allocated_bytes.h"
#include "os/tape_answer.h"
#include "process/cpu_time.h"

namespace clrsampler {

HookPlanterOptions PlanterOptionsFor(const RuntimeEvents& events, RunParts& parts) {
  HookPlanterOptions options;
  options.suspensions = events.pauses;
  options.resumed = events.resumed;
  options.compilations = events.compilations;
  options.allocations = events.allocations;
  options.exceptions = events.exceptions;
  // A run that asks for compilations themselves gets the whole of each.
  options.drop_entry_probe_in_storms = !parts.options.on_compilation && parts.options.view != RecordView::kJit;
  options.attach = [&parts](const HookPlace& place, const std::string& path) {
    return parts.capture->AttachHook(place, path);
  };
  options.cost_share = ProbeCostShareFor(parts.options);
  if (parts.tape == nullptr || !parts.tape->plays()) {
    options.measure_trap = MeasureTrapNs;
  } else {
    options.measure_trap = [] { return absl::UnavailableError("the tape says"); };
  }
  options.hits_of_others = [&parts] { return parts.capture->HookHitsOfOthers(); };
  options.process_cpu_ns = [&parts](uint32_t tgid) {
    return Taped(
        parts.tape, [tgid] { return ProcessCpuNs(tgid); }, "cpu time ", tgid);
  };
  options.allocated_bytes = [&parts](ProcessKey key) -> std::optional<ThreadCounts> {
    // Reads that may wait take a worker each, and a hostile file system could make each of thousands wait.
    const bool may_wait = Taped(
        parts.tape, [&] { return parts.broker->MemoryMayWait("/proc", key.tgid); }, "memory may wait ", key.tgid);
    RuntimeMemory* const runtime = may_wait ? nullptr : parts.sources.memory->RuntimeOf(key);
    return runtime == nullptr ? std::nullopt : ReadAllocatedBytes(*runtime);
  };
  options.began = parts.clock.Now();
  options.tape = parts.tape;
  return options;
}

}  // namespace clrsampler
