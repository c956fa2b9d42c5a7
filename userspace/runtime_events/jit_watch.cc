#include "runtime_events/jit_watch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clr/hooks/jit_flags.h"

namespace clrsampler {
namespace {

// The most callers of a stack in reports. The flame graph has all.
constexpr size_t kMaxCallers = 32;

template <size_t kBytes>
std::string TextOf(const char (&text)[kBytes]) {
  return std::string(text, strnlen(text, kBytes));
}

}  // namespace

JitWatch::JitWatch(Callbacks callbacks, bool stacks, NameStyle names, Symbolizer& symbolizer, FrameTable& frames,
                   const Clock& clock)
    : callbacks_(std::move(callbacks)),
      stacks_(stacks),
      names_(names),
      symbolizer_(symbolizer),
      frames_(frames),
      clock_(clock) {}

void JitWatch::Began(const wire_runtime_event& event, RuntimeActivity& activity) {
  main_loop_.Check();
  activity.CompilationBegan(event.tid, {event.header.time_ns}, event.values[0], event.values[1]);
}

CompiledEvent JitWatch::Ended(const Process& process, const wire_compiled& event, const JitStart* start,
                              MonotonicTime sees_all_since, RuntimeActivity& activity) {
  main_loop_.Check();
  std::unique_ptr<ProcessState>& state = states_[process.key];
  if (state == nullptr) state = std::make_unique<ProcessState>();
  if (reports() && event.entry != 0 && event.result == 0) {
    // It may be freed soon.
    const uint64_t addresses[] = {event.entry};
    symbolizer_.Observe(process, {addresses, {}, {event.header.time_ns}, true});
  }
  const MonotonicTime now = clock_.Now();
  std::map<uint64_t, Fresh>& fresh = state->fresh;
  while (!fresh.empty() &&
         (fresh.size() >= kMaxFresh || fresh.begin()->second.compiled.event.header.time_ns + kFreshNs < now.ns)) {
    fresh.erase(fresh.begin());
  }
  const uint64_t number = next_number_++;
  std::optional<MonotonicTime> began =
      start != nullptr ? start->Of(event.start_words, {event.header.time_ns}) : std::nullopt;
  if (began && *began < sees_all_since) began.reset();
  const CompiledEvent compiled{event, now, number, began};
  fresh[number] = {compiled, std::nullopt};
  activity.CompilationEnded(event.tid, {event.header.time_ns}, event.method_info, event.method, number, began);
  return compiled;
}

Frame JitWatch::NameOf(const Process& process, const CompiledEvent& compiled) {
  const wire_compiled& event = compiled.event;
  if (event.entry == 0 || event.result != 0) {
    return Frame{FrameKind::kJit, NameSource::kNone, "[jit: not compiled]", "", ""};
  }
  // The name of a dynamic method that the hook itself has read is right, whatever has become of the method.
  if (const std::string dynamic_name = TextOf(event.name); !dynamic_name.empty()) {
    MethodName name;
    name.kind = IsIlStub(event.flags) ? MethodKind::kIlStub : MethodKind::kDynamicMethod;
    name.type = "dynamicClass";
    name.method = dynamic_name;
    name.tier = std::string(JitTierText(event.flags));
    return Frame{FrameKind::kJit, NameSource::kRuntimeMemory, FrameText(name, names_), "", name.tier};
  }
  // Code that may be freed counts between two readings that agree; this is the second.
  const uint64_t addresses[] = {event.entry};
  symbolizer_.Observe(process, {addresses, {}, clock_.Now(), true});
  const Mapping* mapping = process.mappings.Find(event.entry);
  return frames_.at(
      symbolizer_.Resolve({process, mapping, event.entry, event.entry, compiled.arrived, true, event.method}).frame);
}

FrameId JitWatch::RoleFrame(const Process& process, const Frame& method, absl::string_view tier) {
  // Names in full have the tier already.
  const std::string suffix = absl::StrCat("[", method.tier, "]");
  const absl::string_view name = absl::StripTrailingAsciiWhitespace(absl::StripSuffix(method.text, suffix));
  Frame role{FrameKind::kRole, NameSource::kNone, "[jit]", "", std::string(tier)};
  if (method.named()) {
    const NameBudget::Charge charge(symbolizer_.budget(), process);
    Frame with_name = role;
    with_name.text = absl::StrCat("[jit ", name, " ", tier, "]");
    const FrameId named = frames_.Intern(std::move(with_name));
    if (!frames_.IsRefusal(named)) return named;
  }
  return frames_.InternOwn(std::move(role));
}

FrameId JitWatch::ThreadFrame(const Process& process, const std::string& text) {
  const NameBudget::Charge charge(symbolizer_.budget(), process);
  const FrameId named = frames_.Intern(Frame{FrameKind::kRole, NameSource::kNone, text, "", ""});
  if (!frames_.IsRefusal(named)) return named;
  return frames_.InternOwn(Frame{FrameKind::kRole, NameSource::kNone, "[thread]", "", ""});
}

void JitWatch::HandleBegin(const Process& process, const wire_runtime_event& event) {
  main_loop_.Check();
  std::unique_ptr<ProcessState>& state = states_[process.key];
  if (state == nullptr) state = std::make_unique<ProcessState>();
  state->tracker.Begin(event.tid, {event.header.time_ns}, event.values[0], event.values[1], event.values[2]);
}

void JitWatch::HandleEnd(const Process& process, const CompiledEvent& compiled, JitStart* start) {
  main_loop_.Check();
  const wire_compiled& event = compiled.event;
  std::unique_ptr<ProcessState>& state = states_[process.key];
  if (state == nullptr) state = std::make_unique<ProcessState>();
  if (start != nullptr) {
    const std::optional<MonotonicTime> began = state->tracker.BeginningOf(event.tid, event.method_info, event.method);
    if (began) start->Compare(event.start_words, *began);
  }
  if (state->waiting) {
    ++counters_.without_stack;
    Report(process.key, *std::exchange(state->waiting, std::nullopt));
  }
  Compilation done;
  done.done = {event.header.time_ns};
  done.tid = event.tid;
  done.comm = TextOf(event.comm);
  done.method = event.method;
  done.entry = event.entry;
  done.flags = event.flags;
  done.bytes = event.bytes;
  done.il_bytes = event.il_bytes;
  done.result = event.result;
  done.dynamic_name = TextOf(event.name);
  std::optional<Compilation> whole = state->tracker.End(event.method_info, std::move(done), compiled.start);
  if (!whole) return;
  counters_.total_ns += whole->own_ns();
  ++counters_.by_tier[std::string(JitTierText(event.flags))];
  if (!reports()) return;  // names are for those that a sample fell into
  const Frame frame = NameOf(process, compiled);
  NamedCompilation observed;
  observed.tgid = process.key.tgid;
  observed.compilation = *std::move(whole);
  observed.method = frame.text;
  observed.module = frame.module;
  observed.place = frame.place;
  observed.source = frame.source;
  observed.tier = std::string(JitTierText(event.flags));
  observed.il_stub = IsIlStub(event.flags);
  if (!frame.named()) ++counters_.without_name;
  if (stacks_) {
    state->waiting = std::move(observed);
  } else {
    Report(process.key, observed);
  }
}

void JitWatch::HandleStack(const Process& process, const wire_cpu_sample& sample, std::span<const FrameId> frames) {
  main_loop_.Check();
  const auto found = states_.find(process.key);
  if (found == states_.end() || !found->second->waiting) return;
  const Compilation& waiting = found->second->waiting->compilation;
  // This event is late: its compilation has gone without it.
  if (waiting.tid != sample.tid || waiting.done.ns != sample.header.time_ns) return;
  NamedCompilation observed = *std::exchange(found->second->waiting, std::nullopt);
  // Below the method that needs the code there is only code of the runtime and the compiler.
  auto caller = std::find_if(frames.rbegin(), frames.rend(), [&](FrameId id) { return IsManaged(frames_.at(id)); });
  std::vector<FrameId> stack(frames.begin(), caller.base());
  if (stack.empty()) {
    const std::string thread = absl::StrCat("[thread ", observed.compilation.comm, "]");
    stack.push_back(ThreadFrame(process, thread));
    observed.callers.push_back(thread);
  } else {
    for (auto frame = stack.rbegin(); frame != stack.rend() && observed.callers.size() < kMaxCallers; ++frame) {
      if (IsManaged(frames_.at(*frame))) observed.callers.push_back(frames_.at(*frame).text);
    }
  }
  stack.push_back(
      RoleFrame(process, {FrameKind::kJit, observed.source, observed.method, "", observed.tier}, observed.tier));
  if (callbacks_.on_stack) callbacks_.on_stack(process, stack, observed.compilation.own_ns());
  Report(process.key, observed);
}

void JitWatch::Report(ProcessKey process, const NamedCompilation& observed) {
  if (callbacks_.on_compilation) callbacks_.on_compilation(process, observed);
}

std::optional<FrameId> JitWatch::RoleOf(const Process& process, uint64_t number) {
  main_loop_.Check();
  const auto state = states_.find(process.key);
  if (state == states_.end()) return std::nullopt;
  const auto found = state->second->fresh.find(number);
  if (found == state->second->fresh.end()) return std::nullopt;
  Fresh& fresh = found->second;
  if (!fresh.role) {
    fresh.role = RoleFrame(process, NameOf(process, fresh.compiled), JitTierText(fresh.compiled.event.flags));
  }
  return fresh.role;
}

void JitWatch::Cut(ProcessKey key) {
  main_loop_.Check();
  const auto found = states_.find(key);
  if (found == states_.end()) return;
  if (found->second->waiting) {
    ++counters_.without_stack;
    Report(key, *std::exchange(found->second->waiting, std::nullopt));
  }
  found->second->tracker.Cut();
}

void JitWatch::End(ProcessKey key) {
  main_loop_.Check();
  const auto found = states_.find(key);
  if (found == states_.end()) return;
  ProcessState& state = *found->second;
  if (state.waiting) {
    ++counters_.without_stack;
    Report(key, *std::exchange(state.waiting, std::nullopt));
  }
  state.tracker.Finish();
  const JitCounters& ended = state.tracker.counters();
  counters_.jit.compilations += ended.compilations;
  counters_.jit.refused += ended.refused;
  counters_.jit.unfinished += ended.unfinished;
  counters_.jit.cut += ended.cut;
  counters_.jit.by_stack += ended.by_stack;
  states_.erase(found);
}

void JitWatch::Finish() {
  main_loop_.Check();
  std::vector<ProcessKey> keys;
  for (const auto& [key, state] : states_) keys.push_back(key);
  for (const ProcessKey key : keys) End(key);
}

std::map<std::string, uint64_t> JitWatchCounters::ByName() const {
  std::map<std::string, uint64_t> all = {{"compilations", jit.compilations}, {"refused", jit.refused},
                                         {"unfinished", jit.unfinished},     {"cut", jit.cut},
                                         {"began_by_stack", jit.by_stack},   {"without_name", without_name},
                                         {"without_stack", without_stack},   {"total_us", total_ns / 1000}};
  for (const auto& [tier, count] : by_tier) all[absl::StrCat("tier_", tier)] = count;
  return all;
}

JitWatchCounters JitWatch::counters() const {
  JitWatchCounters sum = counters_;
  for (const auto& [key, state] : states_) {
    const JitCounters& one = state->tracker.counters();
    sum.jit.compilations += one.compilations;
    sum.jit.refused += one.refused;
    sum.jit.unfinished += one.unfinished;
    sum.jit.cut += one.cut;
    sum.jit.by_stack += one.by_stack;
  }
  return sum;
}

}  // namespace clrsampler
