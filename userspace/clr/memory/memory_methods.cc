#include "clr/memory/memory_methods.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clr/memory/memory_process_state.h"
#include "clr/memory/method_unwind_reader.h"
#include "clr/memory/snapshot_name.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxKnown = 1 << 18;       // methods of one process
constexpr size_t kMaxSettled = 1 << 18;     // addresses of one process
constexpr size_t kMaxKeptBytes = 64 << 20;  // of all processes' code; a large application has 20 MB

constexpr absl::string_view kDoubleMapped = ":doublemapper";  // the runtime's own heaps, with W^X

constexpr char kGone[] = "[jit: the method was gone before it could be read]";
constexpr char kChanged[] = "[jit: changed while read]";
constexpr char kNotPublished[] = "[jit: the runtime has not published the method yet]";
constexpr char kUnreadable[] = "[jit: the process ended before its memory could be read]";
constexpr char kContradiction[] = "[jit: the runtime's memory could not be followed]";
constexpr char kOutside[] = "[jit: in none of the runtime's code ranges]";
constexpr char kNoSnapshot[] = "[jit: a short-lived method that was not seen in time]";

}  // namespace

void MemoryMethods::Observe(const Process& process, const ObservedSample& sample) {
  main_loop_.Check();
  // The process table still shows another program than the one that runs.
  if (process.exec_announced != MonotonicTime::Max()) return;
  const MonotonicTime now = clock_.Now();
  ProcessState* state = TargetOf(process, now);
  if (state == nullptr || state->runtime == nullptr) return;
  for (const wire_code_snapshot& snapshot : sample.snapshots) AddSnapshot(*state, snapshot, sample.time);
  if (options_.earlier != nullptr) {
    const uint64_t generation = options_.earlier->Generation(process.key);
    if (std::exchange(state->earlier_generation, generation) != generation) state->named_earlier.clear();
  }
  NamePromiser* const promiser = options_.earlier == nullptr ? nullptr : options_.earlier->promiser();
  for (const uint64_t address : sample.addresses) {
    if (state->settled.contains(address) && !sample.at_entry) continue;
    if (state->named_earlier.contains(address)) continue;
    const Mapping* mapping = process.mappings.Find(address);
    // A mapping that is not known yet may be a code heap that was made a moment ago.
    if (mapping != nullptr && mapping->kind != MappingKind::kJitMemory) continue;
    if (promiser != nullptr && promiser->NamesFrom(process.key, address, sample.time)) {
      if (state->named_earlier.size() >= kMaxSettled) state->named_earlier.clear();
      state->named_earlier.insert(address);
      continue;
    }
    const MethodRead read = ReadMethod(process, *state, address, now, sample.at_entry);
    if (read.stub.has_value()) {
      NoteStub(*state, address, *read.stub, sample.time);
    } else if (!read.listed && mapping != nullptr && !sample.at_entry) {
      FindUnlisted(process, *state, *mapping, address, sample.time);
    }
  }
}

std::optional<FrameId> MemoryMethods::TypeFrame(const Process& process, uint64_t method_table) {
  main_loop_.Check();
  ProcessState* const state = TargetOf(process, clock_.Now());
  if (state == nullptr || state->runtime == nullptr) return std::nullopt;
  const std::optional<std::string> type = state->runtime->TypeName(method_table);
  if (!type) return std::nullopt;
  std::string text = TypeNameText(*type, options_.names);
  if (state->unverified) absl::StrAppend(&text, kUnverified);
  return frames_.Intern(Frame{FrameKind::kType, NameSource::kRuntimeMemory, std::move(text), "", ""});
}

std::optional<FrameId> MemoryMethods::MethodFrame(ProcessKey key, const MethodName& name) {
  main_loop_.Check();
  ProcessState* const state = StateOf(key);
  if (state == nullptr || state->runtime == nullptr) return std::nullopt;
  return FrameOf(*state, {.kind = ManagedCode::Kind::kMethod, .name = name});
}

// The method that was seen last there. nullptr: none.
MemoryMethods::Known* MemoryMethods::LastSeen(ProcessState& state, uint64_t address, bool at_entry) {
  Known* last = nullptr;
  ForEachAround(state.known, address, [&](Known& known) {
    if (known.ended || (at_entry && known.stub)) return false;
    if (last == nullptr || known.until > last->until) last = &known;
    return false;
  });
  return last;
}

void MemoryMethods::BoundMemory(ProcessState& state) {
  if (state.settled.size() >= kMaxSettled) state.settled.clear();
  if (state.failed.size() >= kMaxSettled) state.failed.clear();
  if (state.methods < kMaxKnown) return;
  state.known.clear();
  state.settled.clear();  // they would never be looked at again
  state.methods = 0;
  kept_bytes_ -= std::exchange(state.kept_bytes, 0);
}

void MemoryMethods::DropOldest(ProcessState& state, std::vector<Known>& there, size_t count) {
  const auto end = there.begin() + static_cast<ptrdiff_t>(count);
  for (auto known = there.begin(); known != end; ++known) {
    const size_t kept = (known->bytes == nullptr ? 0 : known->bytes->size()) + BytesOf(known->unwind);
    state.kept_bytes -= kept;
    kept_bytes_ -= kept;
  }
  there.erase(there.begin(), end);
  state.methods -= count;
}

FrameId MemoryMethods::FailureOf(const RuntimeMemory& runtime) {
  switch (runtime.last_failure()) {
    case ProbeFailure::kChanged:
      return Unnamed(kChanged);
    case ProbeFailure::kUnreadable:
      return Unnamed(kUnreadable);
    case ProbeFailure::kUnsupported:
      return Unnamed(absl::StrCat("[jit: ", runtime.last_detail(), "]"));
    default:
      return Unnamed(kContradiction);
  }
}

MemoryMethods::MethodRead MemoryMethods::ReadMethod(const Process& process, ProcessState& state, uint64_t address,
                                                    MonotonicTime since, bool at_entry) {
  BoundMemory(state);
  Known* const last = LastSeen(state, address, at_entry);
  const bool refused = last != nullptr && frames_.IsRefusal(last->frame);
  if (refused && !frames_.HasRoom()) return {};
  if (last != nullptr && !last->transient && !refused) {
    state.settled.insert(address);
    return {};
  }
  if (last != nullptr && last->transient && last->until >= since) return {};
  // The method that is found was there at some moment between these two, not throughout.
  const MonotonicTime before = clock_.Now();
  std::optional<ManagedCode> found = state.runtime->Find(address);
  if (!found && state.runtime->last_failure() == ProbeFailure::kChanged) found = state.runtime->Find(address);
  const MonotonicTime after = clock_.Now();
  state.failed.erase(address);
  if (!found) {
    state.failed[address] = FailureOf(*state.runtime);
    return {};
  }
  switch (found->kind) {
    case ManagedCode::Kind::kNone:
      return {.listed = false};
    case ManagedCode::Kind::kNoMethod:
      state.failed[address] = Unnamed(at_entry && !found->transient ? kNotPublished : kGone);
      return {};
    case ManagedCode::Kind::kMethod:
    case ManagedCode::Kind::kPrecompiled:
    case ManagedCode::Kind::kStub:
      break;
  }
  const bool is_stub = found->kind == ManagedCode::Kind::kStub;
  // Most of these are met once, so that two readings would name none.
  if (is_stub && found->transient && !at_entry) return {.stub = FrameOf(state, *found)};
  if (at_entry && (is_stub || found->range.begin != address)) {
    state.failed[address] = Unnamed(found->transient ? kGone : kNotPublished);
    return {};
  }
  const FrameId frame = FrameOf(state, *found);
  // Consecutive methods of one shape get the same places for everything that their headers point to. So the header
  // alone does not tell them apart: the name must have been read again, too. A refusal is no name.
  if (last != nullptr && found->transient && last->frame == frame && !frames_.IsRefusal(frame) &&
      last->code.header == found->code.header && last->code.identity == found->code.identity &&
      last->owner == found->owner.number && ReachesTo(state.known, last->start, *last, before)) {
    last->until = before;
    return {};
  }
  Keep(process, state, address, *found, frame, {before, after});
  return {};
}

void MemoryMethods::Keep(const Process& process, ProcessState& state, uint64_t address, const ManagedCode& found,
                         FrameId frame, const Reading& reading) {
  const bool is_stub = found.kind == ManagedCode::Kind::kStub;
  Known known;
  known.stub = is_stub;
  known.frame = frame;
  known.start = is_stub ? address : found.range.begin;
  known.end = is_stub ? address + 1 : found.range.end;
  known.transient = found.transient;
  std::vector<Known>& there = state.known[known.start];
  if (known.transient) {
    known.code = found.code;
    known.owner = found.owner.number;
    if (found.name.kind != MethodKind::kMethod) known.name = found.name.method;
    known.from = reading.after;
    known.until = reading.before;  // a second look makes it an interval
    ++counters_.transient;
    // Dynamic methods have snapshots. A name for one needs a look before the sample and a look after it.
    if (found.name.kind == MethodKind::kMethod) {
      last_transient_ = reading.after;
      known.from = state.owners.Since(found.owner, reading.after);
    }
    state.heaps.NoteAddress(address);
    if (!there.empty()) ++counters_.replaced;
    if (there.size() >= kMaxHistory) DropOldest(state, there, 1);
  } else {
    DropOldest(state, there, there.size());
    if (!frames_.IsRefusal(frame)) state.settled.insert(address);
  }
  // The maps of an unknown runtime may have another form.
  if (!state.unverified) known.lines = state.lines.LinesOf(process, *state.runtime, found);
  if (options_.keep_code && !is_stub) KeepCode(state, found, known);
  there.push_back(std::move(known));
  ++state.methods;
}

// This is done now, while the method is there. Nothing is kept if it is already gone, or if there is too much code.
void MemoryMethods::KeepCode(ProcessState& state, const ManagedCode& found, Known& known) {
  const uint64_t size = found.range.end - found.range.begin;
  if (size > kMaxBodyBytes || size > kMaxKeptBytes - kept_bytes_) return;
  std::string bytes(size, '\0');
  if (!state.memory->Read(found.range.begin, std::as_writable_bytes(std::span(bytes)))) return;
  std::vector<CodeUnwind> unwind;
  if (found.kind == ManagedCode::Kind::kMethod) {
    unwind = ReadUnwindParts(*state.memory, state.runtime->layout(), found.code);
  }
  if (found.transient && !state.runtime->Stands(found.code)) return;
  const auto count = [&](size_t more) {
    state.kept_bytes += more;
    kept_bytes_ += more;
  };
  count(size);
  known.bytes = std::make_shared<const std::string>(std::move(bytes));
  if (BytesOf(unwind) > kMaxKeptBytes - kept_bytes_) return;
  count(BytesOf(unwind));
  known.unwind = std::move(unwind);
}

std::optional<CodeBody> MemoryMethods::BodyOf(const FrameQuery& query) {
  main_loop_.Check();
  ProcessState* const state = StateOf(query.process.key);
  if (state == nullptr) return std::nullopt;
  const Known* known = FindKnown(*state, query.lookup_address, query.time, query.at_entry);
  if (known == nullptr || known->bytes == nullptr) return std::nullopt;
  CodeBody body{known->start, known->bytes, state->machine, {}, known->unwind};
  if (known->lines != nullptr) body.lines = [lines = known->lines] { return lines->All(); };
  return body;
}

std::optional<SourcePlace> MemoryMethods::PlaceOf(const FrameQuery& query) {
  main_loop_.Check();
  ProcessState* const state = StateOf(query.process.key);
  if (state == nullptr) return std::nullopt;
  const Known* known = FindKnown(*state, query.lookup_address, query.time, query.at_entry);
  if (known == nullptr || known->lines == nullptr) return std::nullopt;
  if (query.at_entry) return known->lines->Begin();
  return known->lines->At(static_cast<uint32_t>(query.lookup_address - known->start));
}

// The name of a method that is compiled and not yet published. This is for permanent code only: its MethodDesc is never
// another's.
std::optional<FrameId> MemoryMethods::Unpublished(ProcessState& state, uint64_t address, uint64_t method_desc) {
  const auto failed = state.failed.find(address);
  if (method_desc == 0 || failed == state.failed.end() || frames_.at(failed->second).text != kNotPublished) {
    return std::nullopt;
  }
  const std::optional<ManagedCode> found = state.runtime->Unpublished(method_desc);
  if (!found) return std::nullopt;
  return FrameOf(state, *found);
}

// `until` is a time at which it was seen; intervals of answers end before theirs. A note of the sampler may know more
// than the times at which a method was seen.
Resolution MemoryMethods::AnswerOf(const Known& known, MonotonicTime time) {
  if (time < known.from || known.until < time) return Resolution{known.frame, time, {time.ns + 1}};
  return Resolution{known.frame, known.from, MonotonicTime{known.until.ns + (known.transient ? 1 : 0)}};
}

std::optional<Resolution> MemoryMethods::Resolve(const FrameQuery& query) {
  main_loop_.Check();
  const Mapping* mapping = query.mapping;
  if (mapping != nullptr && mapping->kind != MappingKind::kJitMemory && mapping->kind != MappingKind::kFile) {
    return std::nullopt;
  }
  ProcessState* state = StateOf(query.process.key);
  if (state == nullptr) state = TargetOf(query.process, query.time);
  const bool is_file = mapping != nullptr && mapping->kind == MappingKind::kFile;
  if (state == nullptr || !state->has_code) return std::nullopt;
  if (state->runtime == nullptr) {
    if (is_file || state->refusal.empty() || mapping == nullptr) return std::nullopt;
    return Resolution{Unnamed(absl::StrCat("[jit: memory not readable: ", state->refusal, "]"))};
  }
  // Opened after the process had become another program.
  if (query.process.exec_announced <= state->opened && query.time < query.process.exec_announced) return std::nullopt;
  const uint64_t address = query.lookup_address;
  if (const Known* known = FindKnown(*state, address, query.time, query.at_entry)) return AnswerOf(*known, query.time);
  // More methods than are remembered may have been there since.
  if (const Moment* moment = MomentAt(*state, address, query.time); moment != nullptr && !moment->name.empty()) {
    return Resolution{FrameOf(*state, DynamicMethodNamed(moment->name)), query.time, {query.time.ns + 1}};
  }
  if (is_file && state->foreign.contains(mapping->start)) return std::nullopt;
  const bool readable =
      query.process.exec_announced == MonotonicTime::Max() && query.process.exited == MonotonicTime::Max();
  if (readable) {
    const MethodRead read = ReadMethod(query.process, *state, address, clock_.Now(), query.at_entry);
    if (read.stub.has_value()) NoteStub(*state, address, *read.stub, query.time);
    if (const Known* known = FindKnown(*state, address, query.time, query.at_entry))
      return AnswerOf(*known, query.time);
  }
  if (query.at_entry && readable) {
    if (const std::optional<FrameId> frame = Unpublished(*state, address, query.method_desc)) {
      return Resolution{*frame, query.time, {query.time.ns + 1}};
    }
  }
  return ResolveUnknown(query, *state, is_file, readable);
}

// No method is known to have been there at that time.
std::optional<Resolution> MemoryMethods::ResolveUnknown(const FrameQuery& query, ProcessState& state, bool is_file,
                                                        bool readable) {
  const uint64_t address = query.lookup_address;
  const MonotonicTime end{query.time.ns + 1};
  bool other_times = false;
  ForEachAround(state.known, address,
                [&](const Known& known) { return other_times = !(query.at_entry && known.stub); });
  if (other_times) {
    ++counters_.without_snapshot;
    return Resolution{Unnamed(kNoSnapshot), query.time, query.time};
  }
  if (const auto stub = state.stubs.find(address); !query.at_entry && stub != state.stubs.end() &&
                                                   stub->second.from <= query.time &&
                                                   query.time <= stub->second.until) {
    return Resolution{stub->second.frame, query.time, end};
  }
  if (const auto failed = state.failed.find(address); failed != state.failed.end()) {
    if (is_file) return std::nullopt;
    const std::string& text = frames_.at(failed->second).text;
    ++(text == kChanged ? counters_.changed_while_read : counters_.not_there_any_more);
    return Resolution{failed->second, query.time, query.time};
  }
  if (is_file) {
    state.foreign.insert(query.mapping->start);
    return std::nullopt;
  }
  // No range claims the address. It is code that the runtime lists nowhere (a copied write barrier has 0.2 % of the
  // frames of a JSON workload), or the code of another JIT compiler. No other source knows the code in the runtime's
  // own heaps.
  if (query.mapping == nullptr) return std::nullopt;
  if (!readable) {
    if (!absl::StrContains(query.mapping->path, kDoubleMapped)) return std::nullopt;
    return Resolution{Unnamed(kUnreadable), query.time, end};
  }
  std::optional<FrameId> unlisted;
  if (!query.at_entry) unlisted = FindUnlisted(query.process, state, *query.mapping, address, query.time);
  return Resolution{unlisted.has_value() ? *unlisted : Unnamed(kOutside), query.time, end};
}

// A stub that may be freed counts from the sample after which it was read. To become a stub between the two, a code
// heap would have to be unloaded and its place taken.
void MemoryMethods::NoteStub(ProcessState& state, uint64_t address, FrameId frame, MonotonicTime sampled) {
  if (state.stubs.size() >= kMaxSettled) state.stubs.clear();
  ProcessState::Stub& stub = state.stubs[address];
  if (stub.frame != frame || stub.gone) stub = {frame, sampled, sampled, false};
  stub.until = clock_.Now();
}

// Code that no range claims, known by its instructions.
std::optional<FrameId> MemoryMethods::FindUnlisted(const Process& process, ProcessState& state, const Mapping& mapping,
                                                   uint64_t address, MonotonicTime sampled) {
  const std::optional<UnlistedCode::Found> found =
      unlisted_.Find(process, state.image, state.build, *state.runtime, mapping, address);
  if (!found.has_value()) {
    if (const auto stub = state.stubs.find(address); stub != state.stubs.end()) stub->second.gone = true;
    return std::nullopt;
  }
  ManagedCode code;
  code.kind = ManagedCode::Kind::kStub;
  code.name.kind = MethodKind::kStub;
  code.name.method = std::string(found->kind);
  const FrameId frame = FrameOf(state, code);
  if (found->permanent) {
    if (state.methods < kMaxKnown) {
      Known known;
      known.stub = true;
      known.frame = frame;
      known.end = found->range.end;
      std::vector<Known>& there = state.known[found->range.begin];
      DropOldest(state, there, there.size());
      there.push_back(std::move(known));
      ++state.methods;
    }
    return frame;
  }
  NoteStub(state, address, frame, sampled);
  return frame;
}

FrameId MemoryMethods::FrameOf(const ProcessState& state, const ManagedCode& found) {
  Frame frame;
  frame.kind = found.kind == ManagedCode::Kind::kPrecompiled ? FrameKind::kR2r : FrameKind::kJit;
  frame.source = NameSource::kRuntimeMemory;
  frame.text = FrameText(found.name, options_.names);
  if (state.unverified) absl::StrAppend(&frame.text, kUnverified);
  frame.module = found.name.module;
  frame.tier = found.name.tier;
  frame.symbol = MethodSymbol(found.name);
  if (options_.names == NameStyle::kShort) frame.identity = IdentityOf(found.name);
  return frames_.Intern(std::move(frame));
}

FrameId MemoryMethods::Unnamed(absl::string_view text) {
  return frames_.InternOwn(Frame{FrameKind::kJit, NameSource::kNone, std::string(text), "", ""});
}

}  // namespace clrsampler
