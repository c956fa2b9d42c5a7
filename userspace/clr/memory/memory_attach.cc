// The processes of MemoryMethods: opened, watched over, counted and forgotten.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clr/memory/memory_methods.h"
#include "clr/memory/memory_process_state.h"
#include "formats/proc/environ_text.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// A runtime that has not begun yet is asked again at this interval, for this long.
constexpr uint64_t kRetryNs = 20'000'000;
constexpr int kMaxAttempts = 1000;
constexpr int kMaxContradictions = 10;

// The first methods of a process are compiled, run and left within milliseconds, and some processes end as soon.
constexpr uint64_t kYoungNs = 2'000'000'000;

std::string TextOf(const Process& process, const DotNetRuntime& runtime) {
  return absl::StrCat("process ", process.key.tgid, " (", process.comm, ", .NET ", runtime.version.Text(), ")");
}

}  // namespace

std::string MemoryMethods::BuildOf(const Process& process, const DotNetRuntime& runtime) {
  const absl::StatusOr<std::shared_ptr<const ImageFile>> image = images_.Get(process, runtime.mapping);
  // A file that can't be told from others is a build of its own.
  const std::string file = image.ok() ? IdentityText(**image) : absl::StrCat("of ", process.key.incarnation);
  return absl::StrCat(file, ":", runtime.version.Text());
}

MemoryMethods::MemoryMethods(MemoryMethodsOptions options, RuntimeDiscovery& runtimes, ImageFiles& images,
                             FrameTable& frames, Notices& notices, const Clock& clock)
    : options_(std::move(options)),
      runtimes_(runtimes),
      images_(images),
      unlisted_(images),
      frames_(frames),
      notices_(notices),
      clock_(clock),
      states_([this](ProcessKey, std::unique_ptr<ProcessState>& state) {
        AddCounters(*state, counters_);
        kept_bytes_ -= state->kept_bytes;
      }) {
  if (!options_.open_memory) {
    options_.open_memory = [](const Process& process) -> absl::StatusOr<std::unique_ptr<MemoryReader>> {
      const TargetFiles& files = process.files;
      ASSIGN_OR_RETURN(std::unique_ptr<TargetMemory> memory,
                       TargetMemory::Open(files.proc_root(), process.key.tgid, files.tape(), files.broker()));
      return memory;
    };
  }
}

MemoryMethods::~MemoryMethods() = default;

MemoryMethods::ProcessState* MemoryMethods::StateOf(ProcessKey key) const {
  const std::unique_ptr<ProcessState>* const found = states_.Find(key);
  return found == nullptr ? nullptr : found->get();
}

MemoryMethods::ProcessState* MemoryMethods::TargetOf(const Process& process, MonotonicTime now) {
  std::unique_ptr<ProcessState>& state = states_.Of(process);
  if (state == nullptr) {
    state = std::make_unique<ProcessState>(options_.pdbs);
    state->opened = clock_.Now();
  }
  if (!state->has_code) {
    if (state->seen_mappings == process.mappings.generation()) return nullptr;
    state->seen_mappings = process.mappings.generation();
    state->has_code = process.mappings.has_jit_memory();
    if (!state->has_code) return nullptr;
  }
  if (state->runtime == nullptr && state->refusal.empty()) Attach(process, *state, now);
  return state.get();
}

void MemoryMethods::Refuse(const Process& process, const DotNetRuntime& found, const absl::Status& status,
                           ProcessState& state) {
  state.status = status;
  state.refusal = std::string(status.message());
  ++state.generation;
  ++counters_.refused;
  notices_.Add(
      "memory_refused", absl::StrCat(process.key.tgid),
      absl::StrCat("the runtime's memory of ", TextOf(process, found), " is not used for names: ", status.message()),
      !HintOf(status).empty() ? HintOf(status)
      : MayBeNewerThanKnown(found.version) && !state.unverified
          ? "--enable-perf-map has it write names; --try-unknown-runtime reads it as the newest known one"
          : "--enable-perf-map has a runtime of .NET 8 and newer write names while the agent runs");
}

absl::Status MemoryMethods::OpenMemory(const Process& process, ProcessState& state) {
  if (state.memory != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(state.memory, options_.open_memory(process));
  state.opened = clock_.Now();
  state.images = std::make_unique<TargetImages>(process, images_, clock_);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RuntimeMemory>> MemoryMethods::OpenRuntime(const Process& process,
                                                                          const DotNetRuntime& found,
                                                                          uint64_t dac_table, ProcessState& state) {
  TargetImages* const images = state.images.get();
  RuntimePlace place;
  place.major = found.version.major;
  place.machine = state.machine = found.machine;
  place.image = images->ImageAround(found.mapping);
  place.dac_table = dac_table;
  place.descriptor = found.AddressOf("DotNetRuntimeContractDescriptor").value_or(0);
  state.unverified = options_.try_unknown_runtime && MayBeNewerThanKnown(found.version);
  place.try_newer = state.unverified;
  if (options_.tables_at) {
    place.tables_at = [this, &process, images](uint64_t base) -> R2rTables {
      const Mapping* mapping = images->FileMappingAt(base);
      return mapping == nullptr ? R2rTables{} : options_.tables_at(process, *mapping, base);
    };
  }
  place.compiles_with_min_opts = [&process] {
    const absl::StatusOr<std::string> environment = process.files.ReadProc("environ", kMaxEnvironmentBytes);
    return environment.ok() && RuntimeNumber(*environment, "JITMinOpts").value_or(0) != 0;
  };
  absl::StatusOr<std::unique_ptr<RuntimeMemory>> runtime = RuntimeMemory::Attach(
      place, *state.memory, [images](uint64_t address) { return images->ContentAt(address); }, copies_,
      proven_.contains(BuildOf(process, found)));
  if (runtime.ok() && state.unverified && (*runtime)->self_test().compared == 0) {
    return absl::FailedPreconditionError("it is not known, and there is no image of CoreLib to test the reader with");
  }
  return runtime;
}

void MemoryMethods::Attach(const Process& process, ProcessState& state, MonotonicTime now) {
  if (now < state.next_attempt || state.attempts >= kMaxAttempts) return;
  if (state.memory == nullptr && !state.tried.Due(process.mappings, clock_)) return;
  const std::optional<DotNetRuntime> found = runtimes_.Find(process);
  if (!found || (found->kind != RuntimeImageKind::kCoreClr && found->kind != RuntimeImageKind::kSingleFileHost)) return;
  state.is_dotnet = true;
  state.next_attempt.ns = now.ns + kRetryNs;
  ++state.attempts;
  const std::optional<uint64_t> dac_table = found->AddressOf("g_dacTable");
  if (!dac_table) {
    return Refuse(process, *found, absl::UnimplementedError("it does not export what debuggers need"), state);
  }
  if (!found->version.known() && !options_.try_unknown_runtime) {
    return Refuse(process, *found, absl::UnimplementedError("its image does not say its version"), state);
  }
  state.status = OpenMemory(process, state);
  if (!state.status.ok()) {
    if (absl::IsPermissionDenied(state.status)) Refuse(process, *found, state.status, state);
    return;
  }
  absl::StatusOr<std::unique_ptr<RuntimeMemory>> runtime = OpenRuntime(process, *found, *dac_table, state);
  state.status = runtime.status();
  if (runtime.ok()) {
    state.runtime = *std::move(runtime);
    return NoteAttached(process, *found, state);
  }
  const bool may_change = absl::IsAborted(runtime.status()) && ++state.contradictions < kMaxContradictions;
  if ((!may_change && !absl::IsUnavailable(runtime.status())) || state.attempts >= kMaxAttempts) {
    Refuse(process, *found, runtime.status(), state);
  }
}

void MemoryMethods::NoteAttached(const Process& process, const DotNetRuntime& found, ProcessState& state) {
  state.image = found.mapping;
  state.build = BuildOf(process, found);
  ++state.generation;
  ++counters_.attached;
  if (state.runtime->self_test().proves_method_arguments()) proven_.insert(state.build);
  if (state.unverified) {
    notices_.Add(
        "memory_unverified", absl::StrCat(process.key.tgid),
        absl::StrCat("the runtime of ", TextOf(process, found),
                     found.version.known() ? " is newer than all known ones" : " does not say its version",
                     "; its memory is read as that of .NET ", kNewestKnownMajor, ", and names carry", kUnverified));
  }
  // Without CoreLib's image there is nothing to compare with. But every name is checked by itself all the same.
  if (state.runtime->self_test().compared == 0) ++counters_.not_self_tested;
  for (const std::string& difference : state.runtime->layout_differences()) {
    notices_.Add("memory_layout", absl::StrCat(found.version.Text(), difference),
                 absl::StrCat(".NET ", found.version.Text(), " describes itself otherwise than known: ", difference,
                              "; its word is taken"));
  }
}

TransientHeaps::Publish MemoryMethods::PublisherFor(const Process& process) const {
  if (!options_.transient_code) return {};
  return [this, &process](const wire_transient_code& code, std::span<const wire_transient_heap> heaps) {
    options_.transient_code(process, code, heaps);
  };
}

void MemoryMethods::NoteCompiled(const Process& process, uint64_t entry, uint64_t method_desc, MonotonicTime time) {
  main_loop_.Check();
  if (entry == 0) return;  // refused
  ProcessState* state = StateOf(process.key);
  if (state == nullptr || state->runtime == nullptr) return;
  NoteEnds(*state, entry, time);
  if (!state->heaps.Compiled(*state->runtime, entry, PublisherFor(process))) return;
  if (const auto owner = state->runtime->OwnerOfAssembly(entry, method_desc)) {
    state->owners.Since(*owner, clock_.Now());
  }
}

absl::Status MemoryMethods::Try(const Process& process) {
  main_loop_.Check();
  TargetOf(process, clock_.Now());
  return StateOf(process.key)->status;
}

uint64_t MemoryMethods::Generation(ProcessKey key) const {
  const ProcessState* const state = StateOf(key);
  if (state == nullptr) return 0;
  return state->generation + (options_.pdbs == nullptr ? 0 : options_.pdbs->generation());
}

void MemoryMethods::Poll(const Process& process, MonotonicTime now) {
  main_loop_.Check();
  if (process.exec_announced != MonotonicTime::Max() || process.exited != MonotonicTime::Max()) return;
  ProcessState* state = TargetOf(process, now);
  if (state != nullptr && state->runtime != nullptr) {
    state->runtime->NextIteration();
    NoteOwners(*state, state->heaps.Poll(*state->runtime, process.mappings, now, PublisherFor(process)));
  }
  if (state != nullptr && state->is_dotnet && state->refusal.empty() &&
      now.ns - std::min(now, process.compiles_since).ns < kYoungNs) {
    last_young_ = now;
  }
}

// So methods of collectible assemblies that were there before the first sample are named from it on. A process with
// more such heaps than this has made its heaps for dynamic methods. The heaps of the others are known by their samples.
void MemoryMethods::NoteOwners(ProcessState& state, const std::vector<uint64_t>& heaps) {
  constexpr size_t kMost = 256;
  for (size_t i = 0; i < std::min(heaps.size(), kMost); ++i) {
    if (const auto owner = state.runtime->OwnerOfHeap(heaps[i])) state.owners.Since(*owner, clock_.Now());
  }
}

bool MemoryMethods::WantsShortIterations(MonotonicTime now) const {
  const auto within = [now](MonotonicTime last, uint64_t ns) {
    return last != MonotonicTime::Min() && now.ns - std::min(now, last).ns < ns;
  };
  return within(last_young_, 200'000'000) || within(last_transient_, 1'000'000'000);
}

RuntimeMemory* MemoryMethods::RuntimeOf(ProcessKey key) const {
  const ProcessState* const state = StateOf(key);
  return state == nullptr ? nullptr : state->runtime.get();
}

std::string MemoryMethods::RefusalOf(ProcessKey key) const {
  const ProcessState* const state = StateOf(key);
  return state == nullptr ? "" : state->refusal;
}

bool MemoryMethods::IsDotNet(ProcessKey key) const {
  const ProcessState* const state = StateOf(key);
  return state != nullptr && state->is_dotnet;
}

void MemoryMethods::AddCounters(const ProcessState& state, MemoryMethodsCounters& sum) const {
  if (state.memory != nullptr) {
    const MemoryCounters memory = state.memory->counters();
    sum.memory.reads += memory.reads;
    sum.memory.bytes += memory.bytes;
    sum.memory.failures += memory.failures;
  }
  sum.il_maps += state.lines.maps_read();
  sum.il_maps_failed += state.lines.maps_failed();
  if (state.runtime == nullptr) return;
  const RuntimeMemoryCounters& counters = state.runtime->counters();
  sum.lookups += counters.lookups;
  sum.methods += counters.methods;
  sum.stubs += counters.stubs;
  sum.metadata_copied += state.runtime->modules().copied();
  for (size_t i = 0; i < kProbeFailures; ++i) sum.failures[i] += counters.failures[i];
}

std::map<std::string, uint64_t> MemoryMethodsCounters::ByName() const {
  const auto failed = [this](ProbeFailure failure) { return failures[static_cast<size_t>(failure)]; };
  return {{"processes", attached},
          {"refused", refused},
          {"not_self_tested", not_self_tested},
          {"lookups", lookups},
          {"methods", methods},
          {"stubs", stubs},
          {"transient", transient},
          {"replaced", replaced},
          {"metadata_copied", metadata_copied},
          {"il_maps", il_maps},
          {"il_maps_failed", il_maps_failed},
          {"snapshots", snapshots},
          {"snapshots_gone", snapshots_gone},
          {"without_snapshot", without_snapshot},
          {"gone", not_there_any_more},
          {"changed", changed_while_read},
          {"unreadable", failed(ProbeFailure::kUnreadable)},
          {"contradictions", failed(ProbeFailure::kContradiction)},
          {"unsupported", failed(ProbeFailure::kUnsupported)},
          {"reads", memory.reads},
          {"bytes", memory.bytes}};
}

MemoryMethodsCounters MemoryMethods::counters() const {
  MemoryMethodsCounters sum = counters_;
  for (const auto& [key, state] : states_) AddCounters(*state, sum);
  return sum;
}

size_t MemoryMethods::heap_bytes() const { return copies_.heap_bytes(); }

}  // namespace clrsampler
