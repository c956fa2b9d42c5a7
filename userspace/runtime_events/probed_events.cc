#include "runtime_events/probed_events.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/strip.h"
#include "formats/proc/maps_text.h"
#include "process/maps_mapping.h"
#include "process/target_files.h"

namespace clrsampler {
namespace {

using enum ClrEventKind;

constexpr std::array kKinds = {
    kThreadCreated,          kThreadDestroyed,          kThreadNameChanged,         kModuleLoadFinished,
    kJitCompilationFinished, kRuntimeSuspendStarted,    kRuntimeSuspendFinished,    kRuntimeResumeStarted,
    kRuntimeResumeFinished,  kGarbageCollectionStarted, kGarbageCollectionFinished,
};

constexpr absl::string_view kProbe = "probe", kKernel = "kernel", kMemory = "memory";

ClrEvent EventOf(const RuntimeEvent& event) {
  const auto number = [&](size_t argument) { return static_cast<uint32_t>(event.arguments[argument]); };
  switch (event.kind) {
    case RuntimeEventKind::kSuspend:
      return {kRuntimeSuspendStarted, ClrSuspension{number(0)}};
    case RuntimeEventKind::kSuspended:
      return {kRuntimeSuspendFinished, {}};
    case RuntimeEventKind::kRestart:
      return {kRuntimeResumeStarted, {}};
    case RuntimeEventKind::kRestarted:
      return {kRuntimeResumeFinished, {}};
    case RuntimeEventKind::kGcStart:
      return {kGarbageCollectionStarted, ClrCollection{.generation = number(0)}};
    case RuntimeEventKind::kGcEnd:
      break;
  }
  return {kGarbageCollectionFinished, ClrCollection{.number = number(0), .generation = number(1)}};
}

}  // namespace

std::span<const ClrEventKind> ProbedEvents::AllKinds() { return kKinds; }

ProbedEvents::ProbedEvents(std::span<const ClrEventKind> kinds, std::vector<std::string> modules, Receiver receiver)
    : wanted_(AllClrEventKinds().size()),
      modules_(std::make_move_iterator(modules.begin()), std::make_move_iterator(modules.end())),
      receiver_(std::move(receiver)) {
  for (const ClrEventKind kind : kinds) wanted_[static_cast<size_t>(kind)] = true;
}

bool ProbedEvents::wants_suspensions() const {
  return std::ranges::any_of(kKinds,
                             [this](ClrEventKind kind) { return Wants(kind) && kind >= kRuntimeSuspendStarted; });
}

bool ProbedEvents::wants_compilations() const { return Wants(kJitCompilationFinished) || Wants(kModuleLoadFinished); }

void ProbedEvents::Give(MonotonicTime time, uint32_t tid, ClrEvent event, absl::string_view source) {
  if (Wants(event.kind)) receiver_({time.ns, tid, {}, std::move(event)}, source);
}

void ProbedEvents::OnThreadCreated(const ThreadCreation& creation) {
  main_loop_.Check();
  ClrThread thread{.tid = creation.created, .method = creation.method, .stack = creation.stack};
  Give(creation.time, creation.creator, {kThreadCreated, std::move(thread)}, kKernel);
}

void ProbedEvents::OnTask(const SideBandEvent& event) {
  main_loop_.Check();
  switch (event.kind) {
    case SideBandKind::kFork:
      if (event.pid == event.parent_pid) names_.erase(event.tid);
      return;  // OnThreadCreated tells it
    case SideBandKind::kExit: {
      ClrThread thread{.tid = event.tid};
      if (const auto name = names_.find(event.tid); name != names_.end()) thread.name = name->second;
      names_.erase(event.tid);
      return Give(event.time, event.tid, {kThreadDestroyed, std::move(thread)}, kKernel);
    }
    case SideBandKind::kComm:
      if (event.exec) return;
      names_[event.tid] = event.comm;
      return Give(event.time, event.tid, {kThreadNameChanged, ClrThread{.tid = event.tid, .name = event.comm}},
                  kKernel);
    case SideBandKind::kMmap:
      return Load(event.time, event.tid, AssemblyOfPath(event.path), event.path, kKernel);
    case SideBandKind::kLost:
      return;
  }
}

void ProbedEvents::OnRuntime(const RuntimeEvent& event) { Give(event.time, event.tid, EventOf(event), kProbe); }

void ProbedEvents::OnCompilation(const NamedCompilation& named) {
  main_loop_.Check();
  const Compilation& compilation = named.compilation;
  if (compilation.result != 0) return;  // the runtime tells of code only
  // A module that is in no file mapped as code shows when its first method is compiled.
  Load(compilation.done, compilation.tid, named.module, named.module, kMemory);
  ClrMethod method{.method = compilation.method, .name = named.method};
  method.il_bytes = compilation.il_bytes;
  method.address = compilation.entry;
  method.code_bytes = compilation.bytes;
  method.tier = named.tier;
  method.dynamic = !compilation.dynamic_name.empty();
  Give(compilation.done, compilation.tid, {kJitCompilationFinished, std::move(method)}, kProbe);
}

void ProbedEvents::Load(MonotonicTime time, uint32_t tid, absl::string_view name, std::string path,
                        absl::string_view source) {
  if (name.empty() || modules_.size() >= kMaxModules || !modules_.emplace(name).second) return;
  Give(time, tid, {kModuleLoadFinished, ClrModule{.path = std::move(path)}}, source);
}

absl::string_view AssemblyOfPath(absl::string_view path) {
  path = WithoutDeletedMark(path);
  if (!absl::ConsumeSuffix(&path, ".dll") && !absl::ConsumeSuffix(&path, ".exe")) return "";
  return path.substr(path.rfind('/') + 1);
}

std::vector<std::string> MappedAssemblies(uint32_t pid) {
  std::vector<std::string> names;
  const absl::StatusOr<std::string> text = TargetFiles("/proc", pid).ReadProc("maps", kMaxMapsBytes);
  if (!text.ok()) return names;
  for (const MapsLine& line : ParseMaps(*text).lines) {
    if (const absl::string_view name = AssemblyOfPath(line.path); !name.empty()) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace clrsampler
