#include "pipeline/runtime_watch_options.h"

#include <sys/types.h>

#include <algorithm>
#include <span>

#include "clr/memory/memory_methods.h"
#include "pipeline/planter_options.h"

namespace clrsampler {
namespace {

void TakePause(const ObservedPause& observed, RunParts& parts, Session& session) {
  if (parts.waits) {
    parts.waits->NotePause(observed.process, observed.pause.requested,
                           observed.pause.resumed.value_or(observed.pause.resume_begun));
  }
  if (!session.SelectsKey(observed.process)) return;
  const uint64_t written = session.sink().AddPause(observed);
  parts.account.samples_written += written;
  parts.account.samples_set_aside -= written;
  if (parts.options.on_pause) parts.options.on_pause(observed);
}

void TakeCompilation(ProcessKey process, const NamedCompilation& compilation, RunParts& parts, Session& session) {
  if (!session.SelectsKey(process)) return;
  session.sink().AddCompilation(process, compilation);
  if (parts.options.on_compilation) parts.options.on_compilation(compilation);
}

// Events are of processes that the session selects. Bytes without an event may be of one that it has not heard of yet.
void TakeAllocation(const ObservedAllocation& observed, RunParts& parts, Session& session) {
  const Process* const process = parts.table.Find(observed.process.tgid);
  if (process != nullptr && process->key == observed.process) session.sink().Announce(*process);
  session.sink().AddAllocation(observed);
}

}  // namespace

RuntimeWatchOptions RuntimeWatchOptionsFor(RunParts& parts, Session& session) {
  const RecordOptions& record = parts.options;
  const RuntimeEvents events = EventsFor(record);
  RuntimeWatchOptions options;
  options.hooks = PlanterOptionsFor(events, parts);
  options.hooks.selects = [&session](const Process& process) { return session.Selects(process); };
  options.roles = events.roles;
  options.jit_stacks = events.compilation_stacks;
  options.names = record.names;
  options.on_pause = [&](const ObservedPause& observed) { TakePause(observed, parts, session); };
  options.on_event = record.on_runtime_event;
  options.on_collection = [&session](ProcessKey key, const GcDone& done) {
    if (session.SelectsKey(key)) session.sink().AddCollection(key, done);
  };
  if (record.on_compilation || session.wants_compilations()) {
    options.jit.on_compilation = [&](ProcessKey process, const NamedCompilation& compilation) {
      TakeCompilation(process, compilation, parts, session);
    };
  }
  options.jit.on_stack = [&session](const Process& process, std::span<const FrameId> frames, uint64_t own_ns) {
    if (session.Selects(process)) session.sink().AddCompiledStack(process, frames, own_ns);
  };
  options.allocations.on_allocation = [&](const ObservedAllocation& observed) {
    TakeAllocation(observed, parts, session);
  };
  options.allocations.type_frame = [&parts](const Process& process, uint64_t method_table) {
    const NameBudget::Charge charge(parts.symbolizer.budget(), process);
    return parts.sources.memory->TypeFrame(process, method_table);
  };
  options.on_allocation_factor = [&session](ProcessKey key, double factor) {
    session.sink().ScaleAllocations(key, factor);
  };
  options.exceptions.on_exception = [&session](const ObservedException& exception) {
    session.sink().AddException(exception);
  };
  options.exceptions.type_frame = options.allocations.type_frame;
  options.on_exception_factor = [&session](ProcessKey key, double factor) {
    session.sink().ScaleExceptions(key, factor);
  };
  options.hits_missed = [&parts](uint32_t tgid) { return parts.capture->HookHitsMissed(static_cast<pid_t>(tgid)); };
  options.read_allocation_sum = [&parts](uint32_t tgid) { parts.capture->ReadAllocationSum(static_cast<pid_t>(tgid)); };
  return options;
}

}  // namespace clrsampler
