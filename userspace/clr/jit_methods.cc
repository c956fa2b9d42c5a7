#include "clr/jit_methods.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clr/jit_files.h"
#include "clr/jit_process_state.h"
#include "formats/names/async_body.h"
#include "formats/names/runtime_names.h"
#include "formats/names/tier.h"
#include "status/status.h"

namespace clrsampler {
namespace {
// After this long without a file, samples stop waiting for one.
constexpr uint64_t kExpectFilesNs = 2'000'000'000;
constexpr uint64_t kLookIntervalNs = 1'000'000'000;
// Samples are named at most 2 s after they were taken; the rest is reserve for a stalled loop.
constexpr uint64_t kKeepSupersededNs = 10'000'000'000;
constexpr uint64_t kRetireIntervalNs = 1'000'000'000;
// The start of a process is known in ticks of 10 ms, the time of a file's change in jiffies.
constexpr uint64_t kFileAgeSlackNs = 1'000'000'000;

constexpr uint64_t kFewestTellingBytes = 64;  // of code that no other method has
constexpr absl::string_view kDefaultDirectory = "/tmp";

}  // namespace

JitMethods::JitMethods(JitMethodsOptions options, FrameTable& frames, Notices& notices, const Clock& clock)
    : options_(std::move(options)),
      frames_(frames),
      notices_(notices),
      clock_(clock),
      seen_([this](ProcessKey, Seen& seen) {
        if (seen.state != nullptr) AddCounters(*seen.state, counters_);
      }),
      unnamed_(frames) {}

JitMethods::~JitMethods() = default;

JitMethods::ProcessState* JitMethods::TargetOf(ProcessKey key) const {
  const Seen* const found = seen_.Find(key);
  return found == nullptr ? nullptr : found->state.get();
}

void JitMethods::NoteMappings(const Process& process, Seen& seen, MonotonicTime now) {
  if (seen.mappings_generation == process.mappings.generation()) return;
  if (!process.mappings.KnowsSince(seen.mappings_generation)) seen.marker.reset();
  bool is_dotnet = false;
  process.mappings.ForEachSince(seen.mappings_generation, [&](const Mapping& mapping) {
    is_dotnet |= absl::StrContains(mapping.path, "/libcoreclr.so") || absl::StrContains(mapping.path, ":doublemapper");
    if (!seen.marker.has_value()) seen.marker = JitdumpMarkerDirectory(mapping, process.namespace_pid);
  });
  seen.mappings_generation = process.mappings.generation();
  const bool has_code = process.mappings.has_jit_memory();
  const std::optional<std::string>& marker = seen.marker;
  if (seen.state == nullptr) {
    if (!has_code && !marker.has_value()) return;
    seen.state = std::make_unique<ProcessState>();
    seen.state->generation_base = ++targets_made_ << 32;
    seen.state->tgid = process.key.tgid;
    seen.state->compiles_since = std::min(process.compiles_since, now);
    seen.state->start = StartOf(process, now);
    seen.state->expectation = {process.namespace_pid, seen.state->start.monotonic, MonotonicOffsetOf(process.files)};
  }
  ProcessState& state = *seen.state;
  state.is_dotnet |= is_dotnet;
  state.marker_mapped = marker.has_value();
  if (!marker.has_value() || *marker == state.marker_directory) return;
  state.marker_directory = *marker;
  state.last_look = MonotonicTime::Min();
  if (state.jitdump.state() == JitdumpTailer::State::kMissing || state.jitdump_directory == state.marker_directory) {
    return;
  }
  // The files that were found elsewhere are not the ones that the process writes.
  counters_.jitdump += state.jitdump.counters();
  state.jitdump = JitdumpTailer();
  state.jitdump_frames.clear();
  state.code_stood_until.clear();
  state.jitdump_resets = 0;
  BeginPerfMapAnew(state, state.perf_map.in_blocks());
}

void JitMethods::BeginPerfMapAnew(ProcessState& state, bool in_blocks) {
  counters_.perf_map += state.perf_map.counters();
  state.perf_map = PerfMapTailer(in_blocks);
  state.perf_map_frames.clear();
  state.perf_map_resets = 0;
  state.generation_base += uint64_t{1} << 31;
}

void JitMethods::Poll(const Process& process, MonotonicTime now) {
  if (const Seen* known = seen_.Find(process.key); known != nullptr && known->exec_count != process.exec_count) {
    seen_.End(process.key);
  }
  Seen& seen = seen_.Of(process);
  seen.exec_count = process.exec_count;
  NoteMappings(process, seen, now);
  if (seen.state == nullptr || process.namespace_pid == 0) return;
  ProcessState& state = *seen.state;
  state.process_alive = process.exited == MonotonicTime::Max();
  if (state.last_poll == now && !state.jitdump.behind() && !state.perf_map.behind()) return;
  state.last_poll = now;

  const bool look =
      ExpectsFiles(process.key, state, now) || !state.process_alive || now.ns - state.last_look.ns >= kLookIntervalNs;
  if (look && !state.environment_read) {
    state.environment_read = true;
    state.environment_directory = PerfMapDirectoryOfEnvironment(process.files).value_or(std::string());
  }
  if (look || state.jitdump.state() != JitdumpTailer::State::kMissing) PollJitdump(process, state, now);
  const bool needs_perf_map = state.jitdump.state() != JitdumpTailer::State::kReading;
  const bool newly_needed = state.jitdump_state != state.jitdump.state();
  if (needs_perf_map && look) ChoosePerfMapForm(process, state);
  if (needs_perf_map && (look || newly_needed || state.perf_map.state() != PerfMapTailer::State::kMissing)) {
    PollPerfMap(process, state, now);
  }
  if (look) state.last_look = now;
  NoteTrouble(process, state);
  if (now.ns - state.last_retire.ns >= kRetireIntervalNs) {
    state.last_retire = now;
    const MonotonicTime keep{now.ns > kKeepSupersededNs ? now.ns - kKeepSupersededNs : 0};
    state.jitdump.methods().RetireSupersededBefore(keep);
    state.perf_map.methods().RetireSupersededBefore(keep);
  }
}

// The file of that name in the first directory that has one. A better reason than "not found" is kept for the notice.
absl::StatusOr<OpenedFile> JitMethods::OpenFirst(const Process& process, const ProcessState& state,
                                                 absl::string_view name, std::string& directory) const {
  absl::Status refusal = absl::NotFoundError(name);
  for (const absl::string_view candidate :
       {absl::string_view(state.marker_directory), absl::string_view(state.environment_directory), kDefaultDirectory}) {
    if (candidate.empty()) continue;
    absl::StatusOr<OpenedFile> file = process.files.OpenRuntimeFile(absl::StrCat(candidate, "/", name));
    if (file.ok()) {
      directory = std::string(candidate);
      return file;
    }
    if (absl::IsNotFound(refusal)) refusal = file.status();
  }
  return refusal;
}

void JitMethods::PollJitdump(const Process& process, ProcessState& state, MonotonicTime now) {
  const auto open = [&] {
    return OpenFirst(process, state, absl::StrCat("jit-", process.namespace_pid, ".dump"), state.jitdump_directory);
  };
  const auto is_written = [&](uint64_t device, uint64_t inode) {
    const OpenFileState is_open = process.files.StateOfFile(device, inode, state.jitdump_descriptor);
    state.jitdump_seen_open |= is_open == OpenFileState::kOpen;
    // It has the file mapped. That we never saw its descriptor says more about us.
    const bool doubtful = state.marker_mapped && !state.jitdump_seen_open;
    return is_open == OpenFileState::kNotOpen && doubtful ? OpenFileState::kUnknown : is_open;
  };
  state.jitdump.Poll(open, is_written, state.expectation, state.process_alive, now, options_.poll_budget_bytes,
                     scratch_);
  if (state.jitdump_resets != state.jitdump.counters().resets) {
    state.jitdump_resets = state.jitdump.counters().resets;
    state.jitdump_frames.clear();
    state.code_stood_until.clear();
  }
}

void JitMethods::ChoosePerfMapForm(const Process& process, ProcessState& state) {
  if (!options_.perf_map_in_blocks) return;
  const std::optional<bool> told = options_.perf_map_in_blocks(process);
  // The images of a process that has ended can't be opened, and maps of other compilers have no blocks.
  if (!told && (state.map_form_known || !state.is_dotnet || !state.process_alive)) return;
  state.map_form_known |= told.has_value();
  // A .NET runtime that can't be looked at may be of any version. An old name for new code would be wrong.
  const bool in_blocks = told.value_or(true);
  if (in_blocks != state.perf_map.in_blocks()) BeginPerfMapAnew(state, in_blocks);
}

void JitMethods::PollPerfMap(const Process& process, ProcessState& state, MonotonicTime now) {
  const auto open = [&] {
    std::string directory;
    return OpenFirst(process, state, absl::StrCat("perf-", process.namespace_pid, ".map"), directory);
  };
  // A wall clock that was set while the process ran makes its file look older than the process. The process has the
  // file open, which proves the opposite.
  const auto is_ours = [&](const TailedFile& file) {
    return process.files.HasOpenFile(file.device(), file.inode()) ||
           file.modified_ns() + kFileAgeSlackNs >= state.start.realtime_ns;
  };
  state.perf_map.Poll(open, is_ours, state.process_alive, now, clock_, options_.poll_budget_bytes, scratch_);
  if (state.perf_map_resets != state.perf_map.counters().resets) {
    state.perf_map_resets = state.perf_map.counters().resets;
    state.perf_map_frames.clear();
  }
}

// Reports once what is wrong with a file. Changes of state are counted, since they change answers.
void JitMethods::NoteTrouble(const Process& process, ProcessState& state) {
  const FileOwner owner{absl::StrCat("process ", process.key.tgid, " (", process.comm, ")"),
                        absl::StrCat(process.key.tgid, "/", process.key.incarnation)};
  if (state.jitdump_state != state.jitdump.state()) {
    // Half a record for a moment changes nothing.
    if (state.jitdump.state() != JitdumpTailer::State::kTorn) ++state.state_changes;
    state.jitdump_state = state.jitdump.state();
    NoteJitdumpState(owner, state);
  }
  if (state.perf_map_state != state.perf_map.state()) {
    ++state.state_changes;
    state.perf_map_state = state.perf_map.state();
    NotePerfMapState(owner, state);
  }
  const auto bad_records = [&](absl::string_view kind, absl::string_view file, const auto& tailer, bool& said) {
    using State = decltype(tailer.state());
    // A bad record that ended the reading of its file has been reported already.
    if (tailer.counters().bad_records == 0 || tailer.state() == State::kFailed || std::exchange(said, true)) return;
    notices_.Add(kind, owner.subject,
                 absl::StrCat("the ", file, " of ", owner.text, " holds what is no method; it is passed over"));
  };
  bad_records("jitdump_bad_records", "jitdump", state.jitdump, state.jitdump_bad_said);
  bad_records("perf_map_bad_lines", "perf map", state.perf_map, state.perf_map_bad_said);
  const auto not_opened = [&](const absl::Status& status) {
    if (status.ok() || absl::IsNotFound(status)) return;
    notices_.Add("jit_file_refused", absl::StrCat(owner.subject, status.message()),
                 absl::StrCat("a file with method names of ", owner.text, " can't be used: ", status.message()));
  };
  if (state.jitdump.state() == JitdumpTailer::State::kMissing) not_opened(state.jitdump.status());
  if (state.perf_map.state() == PerfMapTailer::State::kMissing) not_opened(state.perf_map.status());
}

void JitMethods::NoteJitdumpState(const FileOwner& owner, const ProcessState& state) {
  const std::string jitdump = absl::StrCat("the jitdump of ", owner.text);
  const bool has_perf_map = state.perf_map.usable();
  const absl::string_view instead = "; its perf map is used instead";
  const absl::string_view names = has_perf_map ? instead : "; compiled code that runs later has no name";
  const auto say = [&](absl::string_view kind, absl::string_view what, absl::string_view more,
                       absl::string_view hint = "") {
    notices_.Add(kind, owner.subject, absl::StrCat(jitdump, what, more), hint);
  };
  if (state.jitdump.known_defect()) {
    say("jitdump_dead", " ended after its first records: a defect of .NET 10.0.0 to 10.0.12",
        has_perf_map ? instead : "",
        has_perf_map
            ? ""
            : "start the target with DOTNET_PerfMapEnabled=1 or 3, which also write a perf map, or update the runtime");
    return;
  }
  switch (state.jitdump.state()) {
    case JitdumpTailer::State::kDead:
      if (!state.process_alive) return;
      return say("jitdump_dead", " ends inside a record and is not written any more", names,
                 has_perf_map ? "" : "is its file system full? DOTNET_PerfMapEnabled=1 also writes a perf map");
    case JitdumpTailer::State::kClosed:
      return say("jitdump_closed", " was closed by its runtime", names);
    case JitdumpTailer::State::kFailed:
      return say("jitdump_damaged", ": ", state.jitdump.status().message());
    case JitdumpTailer::State::kRefused:
      return say("jitdump_refused", " is not used: ", state.jitdump.status().message());
    default:
      return;
  }
}

void JitMethods::NotePerfMapState(const FileOwner& owner, const ProcessState& state) {
  if (state.perf_map.state() == PerfMapTailer::State::kFailed) {
    notices_.Add("perf_map_damaged", owner.subject,
                 absl::StrCat("the perf map of ", owner.text, ": ", state.perf_map.status().message()));
  } else if (state.perf_map.state() == PerfMapTailer::State::kRefused) {
    notices_.Add("perf_map_refused", owner.subject,
                 absl::StrCat("the perf map of ", owner.text, " is not used: ", state.perf_map.status().message()));
  }
}

JitMethods::Found JitMethods::Find(ProcessState& state, uint64_t address, MonotonicTime time) {
  JitdumpTailer& jitdump = state.jitdump;
  PerfMapTailer& perf_map = state.perf_map;
  const MonotonicTime speaks_until = jitdump.speaks_until();
  const bool before = jitdump.usable() && time < jitdump.speaks_from();
  const bool behind = jitdump.usable() && time > speaks_until;
  if (jitdump.usable() && !before && !behind) {
    MethodAnswer answer = jitdump.methods().Query(address, time);
    if (speaks_until != MonotonicTime::Max()) {
      answer.until = std::min(answer.until, MonotonicTime{speaks_until.ns + 1});
    }
    if (answer.kind != MethodAnswerKind::kNone) return {answer, NameSource::kJitdump};
    if (jitdump.state() == JitdumpTailer::State::kReading) return {answer, NameSource::kNone};
  }
  if (perf_map.usable() && time <= perf_map.speaks_until()) {
    MethodAnswer answer = perf_map.methods().Query(address, time);
    if (perf_map.in_blocks()) answer.until = std::min(answer.until, MonotonicTime{perf_map.speaks_until().ns + 1});
    if (answer.kind != MethodAnswerKind::kNone) {
      // The jitdump may know better for the times that it speaks of.
      if (before) answer.until = std::min(answer.until, jitdump.speaks_from());
      if (behind) answer.from = std::max(answer.from, MonotonicTime{speaks_until.ns + 1});
      if (jitdump.usable() && !before && !behind) {
        answer.from = time;
        answer.until = {time.ns + 1};
      }
      return {answer, NameSource::kPerfMap};
    }
  }
  if (behind && !perf_map.usable()) {
    // Nothing reports new compilations now. The last known method is still there if its code still stands where it was.
    // Short ones can have the same code as others. Those of .NET are left to memory; no other runtime is read there.
    MethodAnswer answer = jitdump.methods().Query(address, speaks_until);
    if (answer.kind == MethodAnswerKind::kMethod && (!state.is_dotnet || answer.size >= kFewestTellingBytes) &&
        CodeStands(state, answer, time)) {
      answer.until = {state.code_stood_until[answer.start].ns + 1};
      return {answer, NameSource::kJitdump};
    }
  }
  MethodAnswer none;
  none.from = time;
  none.until = {time.ns + 1};
  return {none, NameSource::kNone};
}

// Once an iteration, for each method that samples hit: compares the code in the jitdump with the target's memory.
bool JitMethods::CodeStands(ProcessState& state, const MethodAnswer& answer, MonotonicTime time) {
  MonotonicTime& stood_until = state.code_stood_until[answer.start];
  if (time <= stood_until) return true;
  // Beginnings alone are alike, since they are prologues. 256 bytes hold the relative calls and constants that tell
  // methods apart.
  std::array<std::byte, 256> recorded;
  std::array<std::byte, 256> found;
  const std::optional<std::string> name = state.jitdump.ReadName(answer.name);
  if (!name.has_value()) return false;
  const size_t wanted = std::min<size_t>(answer.size, recorded.size());
  const std::span<std::byte> code = std::span(recorded).first(wanted);
  if (state.jitdump.ReadCode(answer.name, name->size(), code) != wanted) return false;
  ++counters_.code_compared;
  if (!options_.read_memory(state.tgid, answer.start, std::span(found).first(wanted))) return false;
  if (std::memcmp(recorded.data(), found.data(), wanted) != 0) return false;
  stood_until = std::max(time, state.last_poll);
  return true;
}

std::optional<FrameId> JitMethods::NameOf(ProcessState& state, const Found& found) {
  const bool is_jitdump = found.source == NameSource::kJitdump;
  auto& known = is_jitdump ? state.jitdump_frames : state.perf_map_frames;
  const auto cached = known.find(found.answer.name.offset);
  if (cached != known.end()) return cached->second;
  const std::optional<std::string> text =
      is_jitdump ? state.jitdump.ReadName(found.answer.name) : state.perf_map.ReadName(found.answer.name);
  if (!text.has_value()) {
    ++counters_.names_lost;
    return std::nullopt;
  }
  ++counters_.names_read;
  MethodName name = ParseRuntimeName(*text);
  Frame frame;
  frame.kind = tier::IsPrecompiled(name.tier) ? FrameKind::kR2r : FrameKind::kJit;
  frame.source = found.source;
  frame.text = options_.names == NameStyle::kRaw ? *text : FrameText(name, options_.names);
  frame.symbol = MethodSymbol(name);
  if (options_.names == NameStyle::kShort) frame.identity = IdentityOf(name);
  frame.module = std::move(name.module);
  frame.tier = std::move(name.tier);
  const FrameId id = frames_.Intern(std::move(frame));
  if (!frames_.IsRefusal(id)) known.emplace(found.answer.name.offset, id);
  return id;
}

std::optional<Resolution> JitMethods::Resolve(const FrameQuery& query) {
  const bool is_jit_memory = query.mapping != nullptr && query.mapping->kind == MappingKind::kJitMemory;
  if (query.mapping != nullptr && !is_jit_memory) return std::nullopt;
  ProcessState* const state = TargetOf(query.process.key);
  if (state == nullptr) {
    if (!is_jit_memory) return std::nullopt;
    ++counters_.no_map;
    return Resolution{unnamed_.For(UnnamedReason::kNoMap), query.time, {query.time.ns + 1}};
  }
  const Found found = Find(*state, query.lookup_address, query.time);
  const MethodAnswer& answer = found.answer;
  if (answer.kind == MethodAnswerKind::kMethod || answer.kind == MethodAnswerKind::kStub) {
    if (answer.kind == MethodAnswerKind::kStub && stubs_ != nullptr) {
      const std::optional<Resolution> stub = stubs_->Resolve(query);
      if (stub.has_value() && frames_.at(stub->frame).named()) return stub;
    }
    const std::optional<FrameId> frame = NameOf(*state, found);
    return Resolution{frame.has_value() ? *frame : unnamed_.For(UnnamedReason::kNameLost), answer.from, answer.until};
  }
  if (!is_jit_memory) return std::nullopt;
  if (answer.kind == MethodAnswerKind::kAmbiguous) {
    ++counters_.ambiguous;
    last_ambiguous_ = std::max(last_ambiguous_, query.time);
    return Resolution{unnamed_.For(UnnamedReason::kAmbiguous), answer.from, answer.until};
  }
  if (state->jitdump.known_defect() && !state->perf_map.usable()) {
    ++counters_.no_map;
    return Resolution{unnamed_.For(UnnamedReason::kJitdumpDead), answer.from, answer.until};
  }
  if (state->jitdump.usable() || state->perf_map.usable()) {
    ++counters_.not_in_map;
    if (!state->jitdump.usable() && query.time > state->perf_map.speaks_until()) {
      return Resolution{unnamed_.For(UnnamedReason::kMapIsLate), answer.from, answer.until};
    }
    // A stub that the runtime did not announce, or a method whose line it has not written yet.
    return Resolution{unnamed_.For(UnnamedReason::kNotInMap), answer.from, answer.until};
  }
  ++counters_.no_map;
  return Resolution{unnamed_.For(state->is_dotnet ? UnnamedReason::kNoMapDotnet : UnnamedReason::kNoMap),
                    MonotonicTime::Min(), MonotonicTime::Max()};
}

std::optional<Resolution> JitMethods::ResolvePrecompiled(const FrameQuery& query) {
  ProcessState* const state = TargetOf(query.process.key);
  if (state == nullptr || !state->jitdump.usable()) return std::nullopt;
  const Found found{state->jitdump.methods().Query(query.lookup_address, query.time), NameSource::kJitdump};
  if (found.answer.kind != MethodAnswerKind::kMethod) return std::nullopt;
  const std::optional<FrameId> frame = NameOf(*state, found);
  if (!frame.has_value() || frames_.at(*frame).kind != FrameKind::kR2r) return std::nullopt;
  return Resolution{*frame, found.answer.from, found.answer.until};
}

bool JitMethods::NamesFrom(ProcessKey key, uint64_t lookup_address, MonotonicTime time) {
  ProcessState* const state = TargetOf(key);
  if (state == nullptr || !state->jitdump_alive()) return false;
  JitdumpTailer& jitdump = state->jitdump;
  // Where the jitdump does not speak, the answer depends on the content of memory. A perf map's lines have no times:
  // the next one may take this name back.
  if (time < jitdump.speaks_from() || jitdump.speaks_until() != MonotonicTime::Max()) return false;
  const MethodAnswer answer = jitdump.methods().Query(lookup_address, time);
  return answer.kind == MethodAnswerKind::kMethod && answer.until == MonotonicTime::Max();
}

uint64_t JitMethods::Generation(ProcessKey key) const {
  const ProcessState* const state = TargetOf(key);
  if (state == nullptr) return 0;
  return state->generation_base + state->state_changes + state->jitdump.methods().generation() +
         state->perf_map.methods().generation();
}

MonotonicTime JitMethods::CompleteUntil(ProcessKey key) const {
  const ProcessState* const state = TargetOf(key);
  if (state == nullptr) return MonotonicTime::Max();
  if (state->jitdump_alive()) return state->jitdump.complete_until();
  if (state->perf_map.usable()) return state->perf_map.complete_until();
  // Nothing there. The runtime opens its files before it compiles anything, but we may have seen the memory first.
  return state->process_alive && ExpectsFiles(key, *state, state->last_poll) ? state->last_look : MonotonicTime::Max();
}

bool JitMethods::ExpectsFiles(ProcessKey key, const ProcessState& state, MonotonicTime now) const {
  if (now.ns - state.compiles_since.ns < kExpectFilesNs) return true;
  return state.perf_map.state() == PerfMapTailer::State::kMissing && options_.perf_map_promised &&
         options_.perf_map_promised(key);
}

bool JitMethods::WantsShortIterations(MonotonicTime now) const { return now.ns < last_ambiguous_.ns + 1'000'000'000; }

bool JitMethods::MayIdle() const {
  return std::none_of(seen_.begin(), seen_.end(), [](const auto& process) {
    const ProcessState* const state = process.second.state.get();
    return state != nullptr && state->perf_map.usable() && !state->jitdump_alive();
  });
}

void JitMethods::AddCounters(const ProcessState& state, JitMethodsCounters& sum) {
  sum.jitdump += state.jitdump.counters();
  sum.perf_map += state.perf_map.counters();
}

JitMethodsCounters JitMethods::counters() const {
  JitMethodsCounters sum = counters_;
  for (const auto& [key, seen] : seen_) {
    if (seen.state != nullptr) AddCounters(*seen.state, sum);
  }
  return sum;
}

}  // namespace clrsampler
