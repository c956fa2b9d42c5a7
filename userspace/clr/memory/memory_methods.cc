#include "clr/memory/memory_methods.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clr/memory/heap_owners.h"
#include "clr/memory/method_line_reader.h"
#include "clr/memory/method_unwind_reader.h"
#include "clr/memory/methods_by_start.h"
#include "clr/memory/target_images.h"
#include "clr/memory/witness_name.h"
#include "formats/names/async_body.h"
#include "process/mappings_pace.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxKnown = 1 << 18;       // methods of one process
constexpr size_t kMaxSettled = 1 << 18;     // addresses of one process
constexpr size_t kMaxKeptBytes = 64 << 20;  // of all processes' code; a large application has 20 MB

// A runtime that has not begun yet is asked again this often, and this long.
constexpr uint64_t kRetryNs = 20'000'000;
constexpr int kMaxAttempts = 1000;
constexpr int kMaxContradictions = 10;

// What a process runs first is compiled, run and left within milliseconds, and some processes live no longer.
constexpr uint64_t kYoungNs = 2'000'000'000;

constexpr absl::string_view kDoubleMapped = ":doublemapper";  // the runtime's own heaps, with W^X

constexpr char kGone[] = "[jit: the method was gone before it could be read]";
constexpr char kChanged[] = "[jit: changed while read]";
constexpr char kNotPublished[] = "[jit: the runtime has not published the method yet]";
constexpr char kUnreadable[] = "[jit: the process ended before its memory could be read]";
constexpr char kContradiction[] = "[jit: the runtime's memory could not be followed]";
constexpr char kOutside[] = "[jit: in none of the runtime's code ranges]";
constexpr char kNotWitnessed[] = "[jit: a short-lived method that was not seen in time]";

}  // namespace

struct MemoryMethods::Known {
  uint64_t end = 0;
  FrameId frame = 0;
  bool transient = false;
  bool stub = false;
  MethodCode code;   // of transient ones: what must still be there
  std::string name;  // of dynamic methods
  uint64_t start = 0;
  std::shared_ptr<const MethodLines> lines;  // nullptr: it has none
  std::shared_ptr<const std::string> bytes;  // of its code; nullptr: they are not kept
  std::vector<CodeUnwind> unwind;            // likewise
  // When it was seen there; a permanent method was and will be there always.
  MonotonicTime from = MonotonicTime::Min();
  MonotonicTime until = MonotonicTime::Max();
};

struct MemoryMethods::Target {
  explicit Target(AssemblyPdbs* pdbs) : lines(pdbs) {}

  bool has_code = false;  // made in the process; most processes of a host have none
  bool is_dotnet = false;
  MonotonicTime opened;
  std::unique_ptr<MemoryReader> memory;  // nullptr: may not be read
  std::unique_ptr<TargetImages> images;
  std::unique_ptr<RuntimeMemory> runtime;  // nullptr: not attached (yet)
  Mapping image;                           // of the attached one's code
  std::string build;                       // which one that is
  ElfMachine machine = ElfMachine::kX64;
  bool unverified = false;
  absl::Status status = absl::UnavailableError("it has compiled nothing yet");  // OK: attached
  std::string refusal;                                                          // why never; else that may change
  MappingsPace tried;                                                           // when a runtime was looked for
  MonotonicTime next_attempt;
  int attempts = 0;
  int contradictions = 0;  // of these
  uint64_t generation = 1;

  // What was read at an address after a sample of it, and the times between which it was there.
  struct Stub {
    FrameId frame = 0;
    MonotonicTime from = MonotonicTime::Min();
    MonotonicTime until = MonotonicTime::Min();
    bool gone = true;  // something else was read there since
  };

  MethodsByStart<Known> known;
  absl::flat_hash_map<uint64_t, Stub> stubs;    // that may be freed
  absl::flat_hash_set<uint64_t> settled;        // addresses inside a permanent method
  absl::flat_hash_set<uint64_t> named_earlier;  // addresses that an earlier source names, as of its generation
  uint64_t earlier_generation = 0;
  absl::flat_hash_set<uint64_t> foreign;          // starts of file mappings that hold no managed code
  absl::flat_hash_map<uint64_t, FrameId> failed;  // why the last look at an address gave nothing

  size_t methods = 0;
  size_t kept_bytes = 0;  // of code and its unwind data
  TransientHeaps heaps;
  HeapOwners owners;
  MethodLineReader lines;
  uint64_t seen_mappings = 0;  // generation that has no code
};

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

void MemoryMethods::Attach(const Process& process, Target& target, MonotonicTime now) {
  if (now < target.next_attempt || target.attempts >= kMaxAttempts) return;
  if (target.memory == nullptr && !target.tried.Due(process.mappings, clock_)) return;
  const std::optional<DotNetRuntime> found = runtimes_.Find(process);
  if (!found || (found->kind != RuntimeImageKind::kCoreClr && found->kind != RuntimeImageKind::kSingleFileHost)) return;
  target.is_dotnet = true;
  target.next_attempt.ns = now.ns + kRetryNs;
  ++target.attempts;
  const std::string who =
      absl::StrCat("process ", process.key.tgid, " (", process.comm, ", .NET ", found->version.Text(), ")");
  const auto refuse = [&](const absl::Status& status) {
    target.status = status;
    target.refusal = std::string(status.message());
    ++target.generation;
    ++counters_.refused;
    notices_.Add("memory_refused", absl::StrCat(process.key.tgid),
                 absl::StrCat("the runtime's memory of ", who, " is not used for names: ", status.message()),
                 !HintOf(status).empty() ? HintOf(status)
                 : IsNewerThanKnown(found->version) && !target.unverified
                     ? "--enable-perf-map has it write names; --try-unknown-runtime reads it as the newest known one"
                     : "--enable-perf-map has a runtime of .NET 8 and newer write names while the agent runs");
  };
  const std::optional<uint64_t> dac_table = found->AddressOf("g_dacTable");
  if (!dac_table || !found->version.known()) {
    return refuse(absl::UnimplementedError("it does not export what debuggers need"));
  }
  if (target.memory == nullptr) {
    absl::StatusOr<std::unique_ptr<MemoryReader>> memory = options_.open_memory(process);
    if (!memory.ok()) {
      target.status = memory.status();
      if (absl::IsPermissionDenied(memory.status())) refuse(memory.status());
      return;
    }
    target.memory = *std::move(memory);
    target.opened = clock_.Now();
    target.images = std::make_unique<TargetImages>(process, images_, clock_);
  }
  RuntimePlace place;
  place.major = found->version.major;
  place.machine = target.machine = found->machine;
  place.image = target.images->ImageAround(found->mapping);
  place.dac_table = *dac_table;
  place.descriptor = found->AddressOf("DotNetRuntimeContractDescriptor").value_or(0);
  target.unverified = options_.try_unknown_runtime && IsNewerThanKnown(found->version);
  place.try_newer = target.unverified;
  if (options_.tables_at) {
    place.tables_at = [this, &process, images = target.images.get()](uint64_t base) -> R2rTables {
      const Mapping* mapping = images->FileMappingAt(base);
      return mapping == nullptr ? R2rTables{} : options_.tables_at(process, *mapping, base);
    };
  }
  const std::string build = absl::StrCat(found->mapping.device_major, ":", found->mapping.device_minor, ":",
                                         found->mapping.inode, ":", found->version.Text());
  absl::StatusOr<std::unique_ptr<RuntimeMemory>> runtime = RuntimeMemory::Attach(
      place, *target.memory, [images = target.images.get()](uint64_t address) { return images->ContentAt(address); },
      copies_, proven_.contains(build));
  if (runtime.ok() && target.unverified && (*runtime)->self_test().compared == 0) {
    runtime =
        absl::FailedPreconditionError("it is not known, and there is no image of CoreLib to test the reader with");
  }
  target.status = runtime.status();
  if (!runtime.ok()) {
    const bool may_change = absl::IsAborted(runtime.status()) && ++target.contradictions < kMaxContradictions;
    if ((!may_change && !absl::IsUnavailable(runtime.status())) || target.attempts >= kMaxAttempts) {
      refuse(runtime.status());
    }
    return;
  }
  target.runtime = *std::move(runtime);
  target.image = found->mapping;
  target.build = build;
  ++target.generation;
  ++counters_.attached;
  if (target.runtime->self_test().proves_method_arguments()) proven_.insert(build);
  if (target.unverified) {
    notices_.Add(
        "memory_unverified", absl::StrCat(process.key.tgid),
        absl::StrCat("the runtime of ", who, " is newer than all known ones; its memory is read as that of .NET ",
                     kNewestKnownMajor, ", and names carry", kUnverified));
  }
  // Without CoreLib's image there is nothing to compare with; every name is checked by itself all the same.
  if (target.runtime->self_test().compared == 0) ++counters_.not_self_tested;
  for (const std::string& difference : target.runtime->layout_differences()) {
    notices_.Add("memory_layout", absl::StrCat(found->version.Text(), difference),
                 absl::StrCat(".NET ", found->version.Text(), " describes itself otherwise than known: ", difference,
                              "; its word is taken"));
  }
}

void MemoryMethods::Observe(const Process& process, const ObservedSample& sample) {
  // The process table still shows another program than the one that runs.
  if (process.exec_announced != MonotonicTime::Max()) return;
  const MonotonicTime now = clock_.Now();
  Target* target = TargetOf(process, now);
  if (target == nullptr || target->runtime == nullptr) return;
  for (const wire_code_witness& witness : sample.witnesses) Hear(*target, witness, sample.time);
  if (options_.earlier != nullptr) {
    const uint64_t generation = options_.earlier->Generation(process.key);
    if (std::exchange(target->earlier_generation, generation) != generation) target->named_earlier.clear();
  }
  for (const uint64_t address : sample.addresses) {
    if (target->settled.contains(address) && !sample.at_entry) continue;
    if (target->named_earlier.contains(address)) continue;
    const Mapping* mapping = process.mappings.Find(address);
    // A mapping that is not known yet may be a code heap that was made a moment ago.
    if (mapping != nullptr && mapping->kind != MappingKind::kJitMemory) continue;
    if (options_.earlier != nullptr && options_.earlier->NamesFrom(process.key, address, sample.time)) {
      if (target->named_earlier.size() >= kMaxSettled) target->named_earlier.clear();
      target->named_earlier.insert(address);
      continue;
    }
    const Looked looked = Look(process, *target, address, now, sample.at_entry);
    if (looked.stub.has_value()) {
      NoteStub(*target, address, *looked.stub, sample.time);
    } else if (!looked.listed && mapping != nullptr && !sample.at_entry) {
      LookForUnlisted(process, *target, *mapping, address, sample.time);
    }
  }
}

// What the sampler saw at the moment of the sample. Its name, when it has one, needs no second look; else the method
// must still be there.
void MemoryMethods::Hear(Target& target, const wire_code_witness& witness, MonotonicTime time) {
  ++counters_.witnesses;
  const std::string name = NameOf(witness);
  // Without a name of its own a witness proves nothing: what is read now may be the next one of the same shape. Two
  // readings have to agree then, or its heap has had one owner for long enough (Look).
  if (name.empty()) {
    ++counters_.witnesses_gone;
    return;
  }
  std::array<std::byte, sizeof witness.identity> identity;
  std::memcpy(identity.data(), witness.identity, identity.size());
  std::vector<Known>& there = target.known[witness.start];
  for (Known& known : there) {
    if (known.transient && known.code.header == witness.header && known.code.identity == identity &&
        absl::StartsWith(known.name, name)) {
      known.from = std::min(known.from, time);
      known.until = std::max(known.until, time);
      known.end = std::max<uint64_t>(known.end, witness.address + 1);
      return;
    }
  }
  Known known;
  known.transient = true;
  known.from = known.until = time;
  known.code.header = witness.header;
  known.code.identity = identity;
  known.code.range.begin = witness.start;
  // Of the body; funclets behind it are covered where samples hit them.
  const auto begin = FieldOf<uint32_t>(identity, target.runtime->layout().code_header.unwinds);
  const auto end = FieldOf<uint32_t>(identity, target.runtime->layout().code_header.unwinds + 4);
  constexpr uint32_t kMaxBody = 1 << 20;
  const uint64_t body = end > begin && end - begin < kMaxBody ? end - begin : 0;
  known.end = std::max<uint64_t>(witness.start + body, witness.address + 1);
  known.code.range.end = known.end;
  ManagedCode method;
  method.kind = ManagedCode::Kind::kMethod;
  method.name.kind = absl::StartsWith(name, "IL_STUB") ? MethodKind::kIlStub : MethodKind::kDynamicMethod;
  method.name.type = "dynamicClass";
  method.name.method = name;
  method.name.tier = "Optimized";
  known.name = name;
  known.frame = FrameOf(target, method);
  ++counters_.transient;
  if (there.size() >= kMaxHistory) there.erase(there.begin());
  there.push_back(std::move(known));
  ++target.methods;
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

std::optional<FrameId> MemoryMethods::TypeFrame(const Process& process, uint64_t method_table) {
  Target* const target = TargetOf(process, clock_.Now());
  if (target == nullptr || target->runtime == nullptr) return std::nullopt;
  const std::optional<std::string> type = target->runtime->TypeName(method_table);
  if (!type) return std::nullopt;
  return frames_.Intern(
      Frame{FrameKind::kType, NameSource::kRuntimeMemory, TypeNameText(*type, options_.names), "", ""});
}

std::optional<FrameId> MemoryMethods::MethodFrame(ProcessKey key, const MethodName& name) {
  const auto target = targets_.find(key);
  if (target == targets_.end() || target->second->runtime == nullptr) return std::nullopt;
  return FrameOf(*target->second, {.kind = ManagedCode::Kind::kMethod, .name = name});
}

MemoryMethods::Looked MemoryMethods::Look(const Process& process, Target& target, uint64_t address, MonotonicTime since,
                                          bool at_entry) {
  if (target.settled.size() >= kMaxSettled) target.settled.clear();
  if (target.failed.size() >= kMaxSettled) target.failed.clear();
  if (target.methods >= kMaxKnown) {
    target.known.clear();
    target.methods = 0;
    kept_bytes_ -= std::exchange(target.kept_bytes, 0);
  }
  Known* last = nullptr;
  ForEachAround(target.known, address, [&](Known& known) {
    if (at_entry && known.stub) return false;
    if (last == nullptr || known.until > last->until) last = &known;
    return false;
  });
  if (last != nullptr) {
    if (!last->transient) {
      target.settled.insert(address);
      return {};
    }
    if (last->until >= since) return {};
  }
  // What is found was there at some moment between these two, not throughout.
  const MonotonicTime before = clock_.Now();
  std::optional<ManagedCode> found = target.runtime->Find(address);
  if (!found && target.runtime->last_failure() == ProbeFailure::kChanged) found = target.runtime->Find(address);
  const MonotonicTime after = clock_.Now();
  target.failed.erase(address);
  if (!found) {
    const ProbeFailure failure = target.runtime->last_failure();
    target.failed[address] =
        Unnamed(failure == ProbeFailure::kChanged       ? std::string(kChanged)
                : failure == ProbeFailure::kUnreadable  ? std::string(kUnreadable)
                : failure == ProbeFailure::kUnsupported ? absl::StrCat("[jit: ", target.runtime->last_detail(), "]")
                                                        : std::string(kContradiction));
    return {};
  }
  switch (found->kind) {
    case ManagedCode::Kind::kNone:
      return {.listed = false};
    case ManagedCode::Kind::kNoMethod:
      target.failed[address] = Unnamed(at_entry && !found->transient ? kNotPublished : kGone);
      return {};
    case ManagedCode::Kind::kMethod:
    case ManagedCode::Kind::kPrecompiled:
    case ManagedCode::Kind::kStub:
      break;
  }
  const bool is_stub = found->kind == ManagedCode::Kind::kStub;
  // Of these most are met once: two readings would name none.
  if (is_stub && found->transient && !at_entry) return {.stub = FrameOf(target, *found)};
  if (at_entry && (is_stub || found->range.begin != address)) {
    target.failed[address] = Unnamed(found->transient ? kGone : kNotPublished);
    return {};
  }
  Known known;
  known.stub = is_stub;
  known.frame = FrameOf(target, *found);
  known.end = is_stub ? address + 1 : found->range.end;
  known.transient = found->transient;
  // Methods of one shape that follow each other get the same places for all that their headers name, so the header
  // alone does not tell them apart: the name must have been read again, too.
  if (last != nullptr && known.transient && last->frame == known.frame && last->code.header == found->code.header &&
      last->code.identity == found->code.identity) {
    last->until = before;
    return {};
  }
  const uint64_t start = is_stub ? address : found->range.begin;
  std::vector<Known>& there = target.known[start];
  if (known.transient) {
    known.code = found->code;
    if (found->name.kind != MethodKind::kMethod) known.name = found->name.method;
    known.from = after;
    known.until = before;  // a second look makes it an interval
    ++counters_.transient;
    // Dynamic methods have witnesses; of these a name needs a look before the sample and one after it.
    if (found->name.kind == MethodKind::kMethod) {
      last_transient_ = after;
      known.from = target.owners.Since(found->owner, after);
    }
    target.heaps.Met(address);
    if (!there.empty()) ++counters_.replaced;
    if (there.size() >= kMaxHistory) there.erase(there.begin());
  } else {
    there.clear();
    target.settled.insert(address);
  }
  known.start = start;
  // The maps of a runtime that is not known may have another form.
  if (!target.unverified) known.lines = target.lines.LinesOf(process, *target.runtime, *found);
  if (options_.keep_code && !is_stub) KeepCode(target, *found, known);
  there.push_back(std::move(known));
  ++target.methods;
  return {};
}

// Now, while the method is there. Nothing is kept where it is not any more, or where there is too much code.
void MemoryMethods::KeepCode(Target& target, const ManagedCode& found, Known& known) {
  const uint64_t size = found.range.end - found.range.begin;
  if (size > kMaxBodyBytes || size > kMaxKeptBytes - kept_bytes_) return;
  std::string bytes(size, '\0');
  if (!target.memory->Read(found.range.begin, std::as_writable_bytes(std::span(bytes)))) return;
  std::vector<CodeUnwind> unwind;
  if (found.kind == ManagedCode::Kind::kMethod) {
    unwind = ReadUnwindParts(*target.memory, target.runtime->layout(), found.code);
  }
  if (found.transient && !target.runtime->Stands(found.code)) return;
  const auto count = [&](size_t more) {
    target.kept_bytes += more;
    kept_bytes_ += more;
  };
  count(size);
  known.bytes = std::make_shared<const std::string>(std::move(bytes));
  if (BytesOf(unwind) > kMaxKeptBytes - kept_bytes_) return;
  count(BytesOf(unwind));
  known.unwind = std::move(unwind);
}

std::optional<CodeBody> MemoryMethods::BodyOf(const FrameQuery& query) {
  const auto target = targets_.find(query.process.key);
  if (target == targets_.end()) return std::nullopt;
  const Known* known = FindKnown(*target->second, query.lookup_address, query.time, query.at_entry);
  if (known == nullptr || known->bytes == nullptr) return std::nullopt;
  CodeBody body{known->start, known->bytes, target->second->machine, {}, known->unwind};
  if (known->lines != nullptr) body.lines = [lines = known->lines] { return lines->All(); };
  return body;
}

std::optional<SourcePlace> MemoryMethods::PlaceOf(const FrameQuery& query) {
  const auto target = targets_.find(query.process.key);
  if (target == targets_.end()) return std::nullopt;
  const Known* known = FindKnown(*target->second, query.lookup_address, query.time, query.at_entry);
  if (known == nullptr || known->lines == nullptr) return std::nullopt;
  if (query.at_entry) return known->lines->Begin();
  return known->lines->At(static_cast<uint32_t>(query.lookup_address - known->start));
}

// The name of a method that is compiled and not yet published. Permanent code only: its MethodDesc is never another's.
std::optional<FrameId> MemoryMethods::Unpublished(Target& target, uint64_t address, uint64_t method_desc) {
  const auto failed = target.failed.find(address);
  if (method_desc == 0 || failed == target.failed.end() || frames_.at(failed->second).text != kNotPublished) {
    return std::nullopt;
  }
  const std::optional<ManagedCode> found = target.runtime->Unpublished(method_desc);
  if (!found) return std::nullopt;
  return FrameOf(target, *found);
}

const MemoryMethods::Known* MemoryMethods::FindKnown(Target& target, uint64_t address, MonotonicTime time,
                                                     bool at_entry) const {
  const Known* found = nullptr;
  ForEachAround(target.known, address, [&](const Known& known) {
    if (known.from > time || time > known.until || (at_entry && known.stub)) return false;
    found = &known;
    return true;
  });
  return found;
}

absl::Status MemoryMethods::Try(const Process& process) {
  TargetOf(process, clock_.Now());
  return targets_.at(process.key)->status;
}

std::optional<Resolution> MemoryMethods::Resolve(const FrameQuery& query) {
  const Mapping* mapping = query.mapping;
  if (mapping != nullptr && mapping->kind != MappingKind::kJitMemory && mapping->kind != MappingKind::kFile) {
    return std::nullopt;
  }
  const auto entry = targets_.find(query.process.key);
  Target* target = entry != targets_.end() ? entry->second.get() : TargetOf(query.process, query.time);
  const bool is_file = mapping != nullptr && mapping->kind == MappingKind::kFile;
  if (target == nullptr || !target->has_code) return std::nullopt;
  if (target->runtime == nullptr) {
    if (is_file || target->refusal.empty() || mapping == nullptr) return std::nullopt;
    return Resolution{Unnamed(absl::StrCat("[jit: memory not readable: ", target->refusal, "]"))};
  }
  // Opened after the process had become another program.
  if (query.process.exec_announced <= target->opened && query.time < query.process.exec_announced) return std::nullopt;
  const uint64_t address = query.lookup_address;
  const auto answer = [](const Known& known) {
    // `until` is a time at which it was seen; intervals of answers end before theirs.
    return Resolution{known.frame, known.from, MonotonicTime{known.until.ns + (known.transient ? 1 : 0)}};
  };
  if (const Known* known = FindKnown(*target, address, query.time, query.at_entry)) return answer(*known);
  if (is_file && target->foreign.contains(mapping->start)) return std::nullopt;
  const bool readable =
      query.process.exec_announced == MonotonicTime::Max() && query.process.exited == MonotonicTime::Max();
  if (readable) {
    const Looked looked = Look(query.process, *target, address, clock_.Now(), query.at_entry);
    if (looked.stub.has_value()) NoteStub(*target, address, *looked.stub, query.time);
    if (const Known* known = FindKnown(*target, address, query.time, query.at_entry)) return answer(*known);
  }
  if (query.at_entry && readable) {
    if (const std::optional<FrameId> frame = Unpublished(*target, address, query.method_desc)) {
      return Resolution{*frame, query.time, {query.time.ns + 1}};
    }
  }
  bool other_times = false;
  ForEachAround(target->known, address,
                [&](const Known& known) { return other_times = !(query.at_entry && known.stub); });
  if (other_times) {
    ++counters_.not_witnessed;
    return Resolution{Unnamed(kNotWitnessed), query.time, query.time};
  }
  if (const auto stub = target->stubs.find(address); !query.at_entry && stub != target->stubs.end() &&
                                                     stub->second.from <= query.time &&
                                                     query.time <= stub->second.until) {
    return Resolution{stub->second.frame, query.time, {query.time.ns + 1}};
  }
  if (const auto failed = target->failed.find(address); failed != target->failed.end()) {
    if (is_file) return std::nullopt;
    const std::string& text = frames_.at(failed->second).text;
    ++(text == kChanged ? counters_.changed_while_read : counters_.not_there_any_more);
    return Resolution{failed->second, query.time, query.time};
  }
  if (is_file) {
    target->foreign.insert(mapping->start);
    return std::nullopt;
  }
  // No range claims it: what the runtime lists nowhere (a copied write barrier has 0.2 % of the frames of a JSON
  // workload), or the code of another JIT compiler. What lies in the runtime's own heaps no other source knows.
  if (mapping == nullptr) return std::nullopt;
  if (!readable) {
    if (!absl::StrContains(mapping->path, kDoubleMapped)) return std::nullopt;
    return Resolution{Unnamed(kUnreadable), query.time, {query.time.ns + 1}};
  }
  std::optional<FrameId> unlisted;
  if (!query.at_entry) unlisted = LookForUnlisted(query.process, *target, *mapping, address, query.time);
  return Resolution{unlisted.has_value() ? *unlisted : Unnamed(kOutside), query.time, {query.time.ns + 1}};
}

// A stub that may be freed counts from the sample after which it was read: to become one between the two, a code heap
// has to be unloaded and its place taken.
void MemoryMethods::NoteStub(Target& target, uint64_t address, FrameId frame, MonotonicTime sampled) {
  if (target.stubs.size() >= kMaxSettled) target.stubs.clear();
  Target::Stub& stub = target.stubs[address];
  if (stub.frame != frame || stub.gone) stub = {frame, sampled, sampled, false};
  stub.until = clock_.Now();
}

// Code that no range claims, known by its instructions.
std::optional<FrameId> MemoryMethods::LookForUnlisted(const Process& process, Target& target, const Mapping& mapping,
                                                      uint64_t address, MonotonicTime sampled) {
  const std::optional<UnlistedCode::Found> found =
      unlisted_.Find(process, target.image, target.build, *target.runtime, mapping, address);
  if (!found.has_value()) {
    if (const auto stub = target.stubs.find(address); stub != target.stubs.end()) stub->second.gone = true;
    return std::nullopt;
  }
  ManagedCode code;
  code.kind = ManagedCode::Kind::kStub;
  code.name.kind = MethodKind::kStub;
  code.name.method = std::string(found->kind);
  const FrameId frame = FrameOf(target, code);
  if (found->permanent) {
    if (target.methods < kMaxKnown) {
      Known known;
      known.stub = true;
      known.frame = frame;
      known.end = found->range.end;
      target.known[found->range.begin] = {std::move(known)};
      ++target.methods;
    }
    return frame;
  }
  NoteStub(target, address, frame, sampled);
  return frame;
}

FrameId MemoryMethods::FrameOf(const Target& target, const ManagedCode& found) {
  Frame frame;
  frame.kind = found.kind == ManagedCode::Kind::kPrecompiled ? FrameKind::kR2r : FrameKind::kJit;
  frame.source = NameSource::kRuntimeMemory;
  frame.text = FrameText(found.name, options_.names);
  if (target.unverified) absl::StrAppend(&frame.text, kUnverified);
  frame.module = found.name.module;
  frame.tier = found.name.tier;
  frame.symbol = MethodSymbol(found.name);
  if (options_.names == NameStyle::kShort) frame.identity = IdentityOf(found.name);
  return frames_.Intern(std::move(frame));
}

FrameId MemoryMethods::Unnamed(absl::string_view text) {
  return frames_.Intern(Frame{FrameKind::kJit, NameSource::kNone, std::string(text), "", ""});
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
