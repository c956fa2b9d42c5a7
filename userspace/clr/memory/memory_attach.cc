// The processes of MemoryMethods: opened, watched over, counted and forgotten.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clr/memory/memory_methods.h"
#include "clr/memory/memory_target.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// A runtime that has not begun yet is asked again this often, and this long.
constexpr uint64_t kRetryNs = 20'000'000;
constexpr int kMaxAttempts = 1000;
constexpr int kMaxContradictions = 10;

// What a process runs first is compiled, run and left within milliseconds, and some processes live no longer.
constexpr uint64_t kYoungNs = 2'000'000'000;

std::string TextOf(const Process& process, const DotNetRuntime& runtime) {
  return absl::StrCat("process ", process.key.tgid, " (", process.comm, ", .NET ", runtime.version.Text(), ")");
}

std::string BuildOf(const DotNetRuntime& runtime) {
  return absl::StrCat(runtime.mapping.device_major, ":", runtime.mapping.device_minor, ":", runtime.mapping.inode, ":",
                      runtime.version.Text());
}

}  // namespace

MemoryMethods::MemoryMethods(MemoryMethodsOptions options, RuntimeDiscovery& runtimes, ImageFiles& images,
                             FrameTable& frames, Notices& notices, const Clock& clock)
    : options_(std::move(options)),
      runtimes_(runtimes),
      images_(images),
      unlisted_(images),
      frames_(frames),
      notices_(notices),
      clock_(clock) {
  if (!options_.open_memory) {
    options_.open_memory = [](const Process& process) -> absl::StatusOr<std::unique_ptr<MemoryReader>> {
      const TargetFiles& files = process.files;
      absl::StatusOr<std::unique_ptr<TargetMemory>> memory =
          TargetMemory::Open(files.proc_root(), process.key.tgid, files.tape(), files.broker());
      RETURN_IF_ERROR(memory.status());
      return *std::move(memory);
    };
  }
}

MemoryMethods::~MemoryMethods() = default;

MemoryMethods::Target* MemoryMethods::TargetOf(const Process& process, MonotonicTime now) {
  std::unique_ptr<Target>& target = targets_[process.key];
  if (target == nullptr) {
    target = std::make_unique<Target>(options_.pdbs);
    target->opened = clock_.Now();
  }
  if (!target->has_code) {
    if (target->seen_mappings == process.mappings.generation()) return nullptr;
    target->seen_mappings = process.mappings.generation();
    target->has_code = process.mappings.has_jit_memory();
    if (!target->has_code) return nullptr;
  }
  if (target->runtime == nullptr && target->refusal.empty()) Attach(process, *target, now);
  return target.get();
}

void MemoryMethods::Refuse(const Process& process, const DotNetRuntime& found, const absl::Status& status,
                           Target& target) {
  target.status = status;
  target.refusal = std::string(status.message());
  ++target.generation;
  ++counters_.refused;
  notices_.Add(
      "memory_refused", absl::StrCat(process.key.tgid),
      absl::StrCat("the runtime's memory of ", TextOf(process, found), " is not used for names: ", status.message()),
      !HintOf(status).empty() ? HintOf(status)
      : IsNewerThanKnown(found.version) && !target.unverified
          ? "--enable-perf-map has it write names; --try-unknown-runtime reads it as the newest known one"
          : "--enable-perf-map has a runtime of .NET 8 and newer write names while the agent runs");
}

absl::Status MemoryMethods::OpenMemory(const Process& process, Target& target) {
  if (target.memory != nullptr) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<MemoryReader>> memory = options_.open_memory(process);
  RETURN_IF_ERROR(memory.status());
  target.memory = *std::move(memory);
  target.opened = clock_.Now();
  target.images = std::make_unique<TargetImages>(process, images_, clock_);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RuntimeMemory>> MemoryMethods::OpenRuntime(const Process& process,
                                                                          const DotNetRuntime& found,
                                                                          uint64_t dac_table, Target& target) {
  TargetImages* const images = target.images.get();
  RuntimePlace place;
  place.major = found.version.major;
  place.machine = target.machine = found.machine;
  place.image = images->ImageAround(found.mapping);
  place.dac_table = dac_table;
  place.descriptor = found.AddressOf("DotNetRuntimeContractDescriptor").value_or(0);
  target.unverified = options_.try_unknown_runtime && IsNewerThanKnown(found.version);
  place.try_newer = target.unverified;
  if (options_.tables_at) {
    place.tables_at = [this, &process, images](uint64_t base) -> R2rTables {
      const Mapping* mapping = images->FileMappingAt(base);
      return mapping == nullptr ? R2rTables{} : options_.tables_at(process, *mapping, base);
    };
  }
  absl::StatusOr<std::unique_ptr<RuntimeMemory>> runtime = RuntimeMemory::Attach(
      place, *target.memory, [images](uint64_t address) { return images->ContentAt(address); }, copies_,
      proven_.contains(BuildOf(found)));
  if (runtime.ok() && target.unverified && (*runtime)->self_test().compared == 0) {
    return absl::FailedPreconditionError("it is not known, and there is no image of CoreLib to test the reader with");
  }
  return runtime;
}

void MemoryMethods::Attach(const Process& process, Target& target, MonotonicTime now) {
  if (now < target.next_attempt || target.attempts >= kMaxAttempts) return;
  if (target.memory == nullptr && !target.tried.Due(process.mappings, clock_)) return;
  const std::optional<DotNetRuntime> found = runtimes_.Find(process);
  if (!found || (found->kind != RuntimeImageKind::kCoreClr && found->kind != RuntimeImageKind::kSingleFileHost)) return;
  target.is_dotnet = true;
  target.next_attempt.ns = now.ns + kRetryNs;
  ++target.attempts;
  const std::optional<uint64_t> dac_table = found->AddressOf("g_dacTable");
  if (!dac_table || !found->version.known()) {
    return Refuse(process, *found, absl::UnimplementedError("it does not export what debuggers need"), target);
  }
  target.status = OpenMemory(process, target);
  if (!target.status.ok()) {
    if (absl::IsPermissionDenied(target.status)) Refuse(process, *found, target.status, target);
    return;
  }
  absl::StatusOr<std::unique_ptr<RuntimeMemory>> runtime = OpenRuntime(process, *found, *dac_table, target);
  target.status = runtime.status();
  if (runtime.ok()) {
    target.runtime = *std::move(runtime);
    return NoteAttached(process, *found, target);
  }
  const bool may_change = absl::IsAborted(runtime.status()) && ++target.contradictions < kMaxContradictions;
  if ((!may_change && !absl::IsUnavailable(runtime.status())) || target.attempts >= kMaxAttempts) {
    Refuse(process, *found, runtime.status(), target);
  }
}

void MemoryMethods::NoteAttached(const Process& process, const DotNetRuntime& found, Target& target) {
  target.image = found.mapping;
  target.build = BuildOf(found);
  ++target.generation;
  ++counters_.attached;
  if (target.runtime->self_test().proves_method_arguments()) proven_.insert(target.build);
  if (target.unverified) {
    notices_.Add("memory_unverified", absl::StrCat(process.key.tgid),
                 absl::StrCat("the runtime of ", TextOf(process, found),
                              " is newer than all known ones; its memory is read as that of .NET ", kNewestKnownMajor,
                              ", and names carry", kUnverified));
  }
  // Without CoreLib's image there is nothing to compare with; every name is checked by itself all the same.
  if (target.runtime->self_test().compared == 0) ++counters_.not_self_tested;
  for (const std::string& difference : target.runtime->layout_differences()) {
    notices_.Add("memory_layout", absl::StrCat(found.version.Text(), difference),
                 absl::StrCat(".NET ", found.version.Text(), " describes itself otherwise than known: ", difference,
                              "; its word is taken"));
  }
}

TransientHeaps::Tell MemoryMethods::TellOf(const Process& process) const {
  if (!options_.transient_code) return {};
  return [this, &process](const wire_transient_code& code, std::span<const wire_transient_heap> heaps) {
    options_.transient_code(process, code, heaps);
  };
}

void MemoryMethods::NoteCompiled(const Process& process, uint64_t entry, uint64_t method_desc) {
  if (entry == 0) return;  // refused
  const auto found = targets_.find(process.key);
  Target* target = found != targets_.end() ? found->second.get() : nullptr;
  if (target == nullptr || target->runtime == nullptr) return;
  if (!target->heaps.Compiled(*target->runtime, entry, TellOf(process))) return;
  if (const auto owner = target->runtime->OwnerOfAssembly(entry, method_desc)) {
    target->owners.Since(*owner, clock_.Now());
  }
}

absl::Status MemoryMethods::Try(const Process& process) {
  TargetOf(process, clock_.Now());
  return targets_.at(process.key)->status;
}

uint64_t MemoryMethods::Generation(ProcessKey key) const {
  const auto target = targets_.find(key);
  if (target == targets_.end()) return 0;
  return target->second->generation + (options_.pdbs == nullptr ? 0 : options_.pdbs->generation());
}

void MemoryMethods::Poll(const Process& process, MonotonicTime now) {
  if (process.exec_announced != MonotonicTime::Max() || process.exited != MonotonicTime::Max()) return;
  Target* target = TargetOf(process, now);
  if (target != nullptr && target->runtime != nullptr) {
    NoteOwners(*target, target->heaps.Poll(*target->runtime, process.mappings, now, TellOf(process)));
  }
  if (target != nullptr && target->is_dotnet && target->refusal.empty() &&
      now.ns - std::min(now, process.compiles_since).ns < kYoungNs) {
    last_young_ = now;
  }
}

// So that methods of collectible assemblies which were there before the first sample are named from it on. A process
// with more such heaps than this has made its heaps for dynamic methods; those of the others are known by their
// samples.
void MemoryMethods::NoteOwners(Target& target, const std::vector<uint64_t>& heaps) {
  constexpr size_t kMost = 256;
  for (size_t i = 0; i < std::min(heaps.size(), kMost); ++i) {
    if (const auto owner = target.runtime->OwnerOfHeap(heaps[i])) target.owners.Since(*owner, clock_.Now());
  }
}

bool MemoryMethods::WantsShortTurns(MonotonicTime now) const {
  const auto within = [now](MonotonicTime last, uint64_t ns) {
    return last != MonotonicTime::Min() && now.ns - std::min(now, last).ns < ns;
  };
  return within(last_young_, 200'000'000) || within(last_transient_, 1'000'000'000);
}

void MemoryMethods::Forget(ProcessKey key) {
  const auto target = targets_.find(key);
  if (target == targets_.end()) return;
  AddCounters(*target->second, counters_);
  kept_bytes_ -= target->second->kept_bytes;
  targets_.erase(target);
}

RuntimeMemory* MemoryMethods::RuntimeOf(ProcessKey key) const {
  const auto target = targets_.find(key);
  return target == targets_.end() ? nullptr : target->second->runtime.get();
}

std::string MemoryMethods::RefusalOf(ProcessKey key) const {
  const auto target = targets_.find(key);
  return target == targets_.end() ? "" : target->second->refusal;
}

bool MemoryMethods::IsDotNet(ProcessKey key) const {
  const auto target = targets_.find(key);
  return target != targets_.end() && target->second->is_dotnet;
}

void MemoryMethods::AddCounters(const Target& target, MemoryMethodsCounters& sum) const {
  if (target.memory != nullptr) {
    const MemoryCounters memory = target.memory->counters();
    sum.memory.reads += memory.reads;
    sum.memory.bytes += memory.bytes;
    sum.memory.failures += memory.failures;
  }
  sum.il_maps += target.lines.maps_read();
  sum.il_maps_failed += target.lines.maps_failed();
  if (target.runtime == nullptr) return;
  const RuntimeMemoryCounters& counters = target.runtime->counters();
  sum.lookups += counters.lookups;
  sum.methods += counters.methods;
  sum.stubs += counters.stubs;
  sum.metadata_copied += target.runtime->modules().copied();
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
          {"witnesses", witnesses},
          {"witnesses_gone", witnesses_gone},
          {"not_witnessed", not_witnessed},
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
  for (const auto& [key, target] : targets_) AddCounters(*target, sum);
  return sum;
}

size_t MemoryMethods::heap_bytes() const { return copies_.heap_bytes(); }

}  // namespace clrsampler
