#include "runtime_events/runtime_watch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

// One that does not depend on the run, so that a replay writes the same text.
std::vector<ProcessKey> InOrder(std::vector<ProcessKey> keys) {
  std::ranges::sort(keys, {}, &ProcessKey::incarnation);
  return keys;
}

// nullopt: of no meaning here.
std::optional<RuntimeEvent> EventOf(const wire_runtime_event& event) {
  RuntimeEvent said;
  switch (event.hook) {
    case WIRE_HOOK_SUSPEND:
      said.kind = RuntimeEventKind::kSuspend;
      break;
    case WIRE_HOOK_SUSPENDED:
      said.kind = RuntimeEventKind::kSuspended;
      break;
    case WIRE_HOOK_RESTART:
      said.kind = RuntimeEventKind::kRestart;
      break;
    case WIRE_HOOK_RESTARTED:
      said.kind = RuntimeEventKind::kRestarted;
      break;
    case WIRE_HOOK_GC_START:
      said.kind = RuntimeEventKind::kGcStart;
      break;
    case WIRE_HOOK_GC_END:
      said.kind = RuntimeEventKind::kGcEnd;
      break;
    default:
      return std::nullopt;
  }
  said.time = {event.header.time_ns};
  said.tid = event.tid;
  said.comm.assign(event.comm, strnlen(event.comm, sizeof event.comm));
  std::copy(std::begin(event.values), std::end(event.values), said.arguments.begin());
  return said;
}

// The additional time of a hit with a stack.
constexpr uint64_t kStackNs = 3'000;

// Nearly all pauses are shorter. The longer ones are looked at as often.
constexpr uint64_t kLongPauseNs = 250'000'000;

bool IsCompiler(const Frame& frame) { return absl::StartsWith(frame.module, "libclrjit"); }

}  // namespace

RuntimeWatch::RuntimeWatch(RuntimeWatchOptions options, RuntimeDiscovery& runtimes, ImageFiles& images,
                           Notices& notices, Symbolizer& symbolizer, FrameTable& frames, const Clock& clock)
    : options_(std::move(options)),
      notices_(notices),
      frames_(frames),
      planter_(options_.hooks, runtimes, images, notices, clock),
      pauses_(options_.on_pause, options_.on_collection, options_.hooks.resumed, frames),
      jit_(options_.jit, options_.jit_stacks, options_.names, symbolizer, frames, clock),
      allocations_(options_.allocations, frames),
      exceptions_(options_.exceptions, frames) {}

uint32_t RuntimeWatch::NoteMissedAtArrival(const Process& process, HookPart part, uint32_t missed) {
  Missed& known = missed_.Of(process);
  const uint32_t left_out = std::exchange(known.left_out[IndexOf(part)], 0);
  const uint32_t count = missed & ~WIRE_MISSED_RATE_LIMITED;
  const uint32_t before = known.arrived;
  const bool met_before = std::exchange(known.met, true);
  known.last = part;
  if (before >= count) return left_out;  // events of two CPUs may cross
  known.arrived = count;
  // The kernel counts on through an exec. Hits missed before the first event may belong to the program before.
  const uint32_t more = left_out + (met_before ? count - before : 0);
  pauses_.MissedBeforeArrival(process.key);
  activities_.Of(process).Cut();
  if ((missed & WIRE_MISSED_RATE_LIMITED) == 0) return more;
  notices_.Add("hooks_limited", absl::StrCat(process.key.tgid),
               absl::StrCat("process ", process.key.tgid, " (", process.comm,
                            ") collects or compiles so often that not all of it is recorded: it has more pauses and "
                            "compilations than are shown"),
               "clrsampler pauses --pid or clrsampler jit --pid record all of one process");
  return more;
}

void RuntimeWatch::NoteMissedAtHandling(const Process& process, uint32_t missed) {
  if (missed == 0) return;
  const uint32_t count = missed & ~WIRE_MISSED_RATE_LIMITED;
  Missed& known = missed_.Of(process);
  if (known.handled >= count) return;
  known.handled = count;
  pauses_.Cut(process.key);
  jit_.Cut(process.key);
}

bool RuntimeWatch::Admit(const Process& process, HookPart part, MonotonicTime time, uint64_t hits, uint64_t more_ns) {
  const bool admitted = planter_.Admit(process.key, part, time, hits, more_ns);
  if (admitted) newest_ = std::max(newest_, time);
  NoteRested(time, &process);
  return admitted;
}

void RuntimeWatch::NoteThread(ProcessKey key, uint32_t tid, bool ends) {
  if (options_.hooks.allocations) planter_.NoteThread(key, tid, ends);
}

void RuntimeWatch::EndThread(ProcessKey key, uint32_t tid) {
  main_loop_.Check();
  allocations_.EndThread(key, tid);
  if (tid == key.tgid) AskForTheRest(key);
}

void RuntimeWatch::AskForTheRest(ProcessKey key) {
  if (options_.read_allocation_sum != nullptr && allocations_.Knows(key)) options_.read_allocation_sum(key.tgid);
  if (options_.hits_missed == nullptr || !exceptions_.Knows(key)) return;
  if (Missed* const known = missed_.Find(key)) {
    known->at_end = options_.hits_missed(key.tgid) & ~WIRE_MISSED_RATE_LIMITED;
  }
}

void RuntimeWatch::Tick(MonotonicTime now) {
  main_loop_.Check();
  ticked_ = now;
  planter_.Tick(now);
  NoteRested(now, nullptr);
  CutPausesWhoseEndsWereNotSent(now);
}

void RuntimeWatch::NoteLeftOut(const Process& process, HookPart part, MonotonicTime time) {
  main_loop_.Check();
  ++missed_.Of(process).left_out[IndexOf(part)];
  CutFrom(process.key, part, time);
}

// The kernel tells of hits that it did not send with the next one, which may not come for long.
void RuntimeWatch::CutPausesWhoseEndsWereNotSent(MonotonicTime now) {
  if (options_.hits_missed == nullptr || now.ns < kLongPauseNs || (asked_.ns != 0 && now.ns < asked_.ns + kLongPauseNs))
    return;
  asked_ = now;
  const MonotonicTime before{now.ns - kLongPauseNs};
  std::vector<ProcessKey> keys = pauses_.PausedProcesses(before);
  for (const auto& [key, activity] : activities_) {
    if (activity.IsInPauseSince(before)) keys.push_back(key);
  }
  for (const ProcessKey key : InOrder(std::move(keys))) {
    Missed* const known = missed_.Find(key);
    if (known == nullptr) continue;
    const uint32_t count = options_.hits_missed(key.tgid);
    if (count <= std::max(known->arrived, known->asked)) continue;
    known->asked = count;
    CutFrom(key, HookPart::kSuspensions, now);
  }
}

void RuntimeWatch::CutFrom(ProcessKey key, HookPart part, MonotonicTime time) {
  RuntimeActivity* const activity = activities_.Find(key);
  switch (part) {
    case HookPart::kSuspensions:
      pauses_.MissedBeforeArrival(key);
      if (activity != nullptr) activity->CutPauses();
      break;
    case HookPart::kCompilations:
      if (activity != nullptr) activity->CutCompilations();
      break;
    case HookPart::kAllocations:
    case HookPart::kExceptions:
      return;  // nothing is ever under way
  }
  std::deque<MonotonicTime>& cuts = cuts_[{key, part}];
  cuts.insert(std::ranges::upper_bound(cuts, time), time);  // events of two CPUs may cross
}

void RuntimeWatch::NoteRested(MonotonicTime time, const Process* cause) {
  for (const HookPlanter::Detached& detached : planter_.TakeDetached()) {
    // Behind all that was taken: an event may come in front of an earlier one of another CPU.
    const MonotonicTime cut = std::max(time, MonotonicTime{newest_.ns + 1});
    for (const ProcessKey key : detached.processes) CutFrom(key, detached.part, cut);
    if (IsEstimated(detached.part)) continue;  // its share of the time says it, in the profile itself
    const bool of_compiler = detached.part == HookPart::kCompilations;
    const std::string who = cause == nullptr ? ", which is not recorded," : absl::StrCat(" (", cause->comm, ")");
    notices_.Add("probes_detached", absl::StrCat(detached.cause),
                 absl::StrCat("process ", detached.cause, who, of_compiler ? " compiles" : " collects",
                              " so often that its probes would cost it more than ", options_.hooks.cost_share * 100,
                              " % of a CPU. They are detached for a part of the time, and not all of its ",
                              of_compiler ? "compilations" : "pauses and collections", " are seen"),
                 "--hook-budget 0 keeps the probes; clrsampler pauses --pid and clrsampler jit --pid always do");
  }
}

void RuntimeWatch::CutAt(ProcessKey key, MonotonicTime time) {
  main_loop_.Check();
  if (cuts_.empty()) return;
  for (const HookPart part : kHookParts) {
    const auto cuts = cuts_.find({key, part});
    if (cuts == cuts_.end() || time < cuts->second.front()) continue;
    part == HookPart::kCompilations ? jit_.Cut(key) : pauses_.Cut(key);
    while (!cuts->second.empty() && cuts->second.front() <= time) cuts->second.pop_front();
    if (cuts->second.empty()) cuts_.erase(cuts);
  }
}

std::optional<RuntimeItem> RuntimeWatch::Arrived(const Process& process, const wire_runtime_event& event) {
  main_loop_.Check();
  const HookPart part = PartOf(event.hook);
  const uint32_t missed = NoteMissedAtArrival(process, part, event.missed);
  if (!Admit(process, part, {event.header.time_ns}, 1 + missed, 0)) return std::nullopt;
  if (event.hook == WIRE_HOOK_COMPILE) {
    jit_.Began(event, activities_.Of(process));
  } else {
    pauses_.Arrived(event);
    if (options_.roles) {
      if (const std::optional<RuntimeEvent> said = EventOf(event))
        activities_.Of(process).Add(*said, planter_.SeesReturns(process.key));
    }
  }
  return event;
}

std::optional<RuntimeItem> RuntimeWatch::Arrived(const Process& process, const wire_compiled& event) {
  main_loop_.Check();
  const uint32_t missed = NoteMissedAtArrival(process, HookPart::kCompilations, event.missed);
  const uint64_t more_ns = options_.jit_stacks ? kStackNs : 0;
  if (!Admit(process, HookPart::kCompilations, {event.header.time_ns}, 1 + missed, more_ns)) return std::nullopt;
  planter_.NoteCompiled(process.key, {event.header.time_ns}, 1 + missed / 2);
  return jit_.Ended(process, event, planter_.StartOf(process.key),
                    planter_.SeesAllSince(process.key, HookPart::kCompilations), activities_.Of(process));
}

std::optional<RuntimeItem> RuntimeWatch::Arrived(const Process& process, const wire_allocation& event) {
  main_loop_.Check();
  // The kernel's sums include the events that it did not send. Nothing else depends on it.
  const AllocationWatch::Since since = allocations_.Note(process.key, event);
  const uint64_t more_ns = event.has_stack != 0 ? kStackNs : 0;
  if (!Admit(process, HookPart::kAllocations, {event.header.time_ns}, since.hits, more_ns)) return std::nullopt;
  return allocations_.Arrived(process, event, since, planter_.SeesTypesSince(process.key));
}

std::optional<RuntimeItem> RuntimeWatch::Arrived(const Process& process, const wire_exception& event) {
  main_loop_.Check();
  const uint32_t missed = NoteMissedAtArrival(process, HookPart::kExceptions, event.missed);
  if (!Admit(process, HookPart::kExceptions, {event.header.time_ns}, 1 + missed, 0)) return std::nullopt;
  return exceptions_.Arrived(process, event, missed);
}

void RuntimeWatch::Handle(const Process& process, const RuntimeItem& item) {
  main_loop_.Check();
  if (const auto* exception = std::get_if<ExceptionEvent>(&item)) return exceptions_.Handle(process.key, *exception);
  if (const auto* allocation = std::get_if<AllocationEvent>(&item)) {
    return allocations_.Handle(process.key, *allocation);
  }
  if (const auto* compiled = std::get_if<CompiledEvent>(&item)) {
    CutAt(process.key, {compiled->event.header.time_ns});
    NoteMissedAtHandling(process, compiled->event.missed);
    return jit_.HandleEnd(process, *compiled, planter_.StartOf(process.key));
  }
  const auto& event = std::get<wire_runtime_event>(item);
  CutAt(process.key, {event.header.time_ns});
  NoteMissedAtHandling(process, event.missed);
  if (event.hook == WIRE_HOOK_COMPILE) return jit_.HandleBegin(process, event);
  if (const std::optional<RuntimeEvent> said = EventOf(event)) {
    if (options_.on_event) options_.on_event(*said);
    pauses_.Handle(process, *said, planter_.SeesReturns(process.key));
  }
}

FrameId RuntimeWatch::RoleFrame(const char* text) {
  return frames_.Intern(Frame{FrameKind::kRole, NameSource::kNone, text, "", ""});
}

size_t RuntimeWatch::PlaceOf(std::span<const FrameId> frames, bool compiling) const {
  const auto is_compiler = [&](FrameId id) { return IsCompiler(frames_.at(id)); };
  size_t at = frames.size();
  // The compiler may have the runtime run managed code: that is a part of the compilation, not its cause.
  if (compiling) {
    const auto innermost = std::find_if(frames.rbegin(), frames.rend(), is_compiler);
    if (innermost != frames.rend()) at = static_cast<size_t>(innermost.base() - frames.begin());
  }
  while (at > 0 && !IsManaged(frames_.at(frames[at - 1]))) --at;
  if (at > 0) return at;
  // It is a thread of the runtime's own: behind the function that all its threads begin in.
  if (compiling) {
    const auto outermost = std::find_if(frames.begin(), frames.end(), is_compiler);
    if (outermost != frames.end()) return static_cast<size_t>(outermost - frames.begin());
  }
  while (at < frames.size() && (frames_.at(frames[at]).kind == FrameKind::kMark ||
                                absl::StartsWith(frames_.at(frames[at]).module, "libc."))) {
    ++at;
  }
  return at;
}

std::optional<RuntimeWatch::Role> RuntimeWatch::RoleOf(const Process& process, const wire_cpu_sample& sample,
                                                       std::span<const FrameId> frames) {
  main_loop_.Check();
  if (!options_.roles) return std::nullopt;
  const RuntimeActivity* const activity = activities_.Find(process.key);
  const absl::string_view comm(sample.comm, strnlen(sample.comm, sizeof sample.comm));
  const std::optional<RuntimeRole> role =
      activity == nullptr ? std::nullopt : activity->At(sample.tid, comm, {sample.header.time_ns});
  if (!role) return RoleByStack(frames);
  switch (role->kind) {
    case RuntimeRoleKind::kSuspending:
      return Role{RoleFrame("[suspending threads]"), PlaceOf(frames, false), role->kind};
    case RuntimeRoleKind::kInBackground:
      return Role{RoleFrame("[gc background]"), PlaceOf(frames, false), role->kind};
    case RuntimeRoleKind::kCollecting: {
      const std::string text = absl::StrCat("[gc gen", role->generation, role->blocking ? " blocking]" : "]");
      return Role{RoleFrame(text.c_str()), PlaceOf(frames, false), role->kind};
    }
    case RuntimeRoleKind::kCompiling:
      break;
  }
  const std::optional<FrameId> compiled = jit_.RoleOf(process, role->compilation);
  if (!compiled) return RoleByStack(frames);
  return Role{*compiled, PlaceOf(frames, true)};
}

// The role that the stack alone shows. Probes are detached, or the compilation has not ended, or an exception has ended
// it.
std::optional<RuntimeWatch::Role> RuntimeWatch::RoleByStack(std::span<const FrameId> frames) {
  if (std::none_of(frames.begin(), frames.end(), [&](FrameId id) { return IsCompiler(frames_.at(id)); })) {
    return std::nullopt;
  }
  return Role{RoleFrame("[jit]"), PlaceOf(frames, true)};
}

void RuntimeWatch::DropBefore(MonotonicTime time) {
  main_loop_.Check();
  std::vector<ProcessKey> cut;  // those without an event that was to be handled
  for (const auto& [of, times] : cuts_) cut.push_back(of.first);
  for (const ProcessKey key : cut) CutAt(key, time);
  for (auto& [key, activity] : activities_) activity.DropBefore(time);
}

void RuntimeWatch::PublishAllocationFactor(ProcessKey key, bool ends) {
  const std::optional<AllocationWatch::Stretch> stretch = allocations_.TakeStretch(key, ends);
  if (!stretch) return;
  const HookCoverage::Whole whole =
      planter_.TakeWhole(key, HookPart::kAllocations, stretch->bytes, stretch->hits, ends);
  const double seen = whole.factor * static_cast<double>(stretch->bytes);
  estimated_bytes_ += seen + static_cast<double>(whole.without_stack);
  options_.on_allocation_factor(key, whole.factor * stretch->factor);
  // These are no part of what the factor is for, so they have one of their own.
  const uint64_t without_stack = whole.without_stack + (stretch->has_stacks ? 0 : static_cast<uint64_t>(seen));
  if (without_stack == 0) return;
  allocations_.GiveWithoutStack(key, std::max(newest_, ticked_), without_stack);
  options_.on_allocation_factor(key, 1);
}

// Probes that are planted for one process see others, which have no coverage before they are looked at.
std::vector<ProcessKey> RuntimeWatch::AllocatingProcesses() const {
  std::vector<ProcessKey> keys = planter_.ProcessesWith(HookPart::kAllocations);
  const absl::flat_hash_set<ProcessKey> known(keys.begin(), keys.end());
  for (const ProcessKey key : allocations_.processes()) {
    if (!known.contains(key)) keys.push_back(key);
  }
  return InOrder(std::move(keys));
}

void RuntimeWatch::StopsSampling() {
  main_loop_.Check();
  planter_.NoteUnseen();
  // Nobody reads what comes from now on, so that the kernel counts more and more that it can't send.
  for (const ProcessKey key : InOrder(exceptions_.processes())) AskForTheRest(key);
  for (const ProcessKey key : allocations_.processes()) {
    if (!exceptions_.Knows(key)) AskForTheRest(key);
  }
}

void RuntimeWatch::PublishAllocationFactors() {
  main_loop_.Check();
  if (!options_.hooks.allocations) return;
  planter_.NoteUnseen();
  for (const ProcessKey key : AllocatingProcesses()) PublishAllocationFactor(key, false);
}

void RuntimeWatch::EndAllocations(ProcessKey key) {
  main_loop_.Check();
  if (!options_.hooks.allocations) return;
  allocations_.GiveWaiting(key);
  PublishAllocationFactor(key, true);
}

void RuntimeWatch::PublishExceptionFactor(ProcessKey key) {
  if (options_.on_exception_factor == nullptr) return;
  const HookCoverage::Whole whole =
      planter_.TakeWhole(key, HookPart::kExceptions, exceptions_.ThrownOf(key), exceptions_.HitsOf(key), false);
  const double factor = whole.factor * exceptions_.FactorOf(key);
  estimated_thrown_ += factor * static_cast<double>(exceptions_.ThrownOf(key));
  for (const auto& [type, count] : exceptions_.RethrownOf(key)) {
    rethrown_[frames_.at(type).text] += factor * static_cast<double>(count);
  }
  options_.on_exception_factor(key, factor);
}

void RuntimeWatch::CountExceptionsBehindTheLast(ProcessKey key) {
  Missed* const known = missed_.Find(key);
  if (known == nullptr) return;
  uint32_t more = std::exchange(known->left_out[IndexOf(HookPart::kExceptions)], 0);
  // The kernel counts hits of all parts together. Those behind another part's event are most likely of that part.
  if (known->met && known->last == HookPart::kExceptions && known->at_end > known->arrived) {
    more += known->at_end - std::exchange(known->arrived, known->at_end);
  }
  if (more > 0) exceptions_.NoteNotSent(key, more);
}

void RuntimeWatch::End(ProcessKey key) {
  main_loop_.Check();
  CountExceptionsBehindTheLast(key);
  if (exceptions_.Knows(key)) {
    exceptions_.GiveWaiting(key);
    PublishExceptionFactor(key);
    exceptions_.End(key);
  }
  EndAllocations(key);
  allocations_.End(key);
  pauses_.End(key);
  jit_.End(key);
  for (const HookPart part : kHookParts) cuts_.erase({key, part});
}

void RuntimeWatch::Finish() {
  main_loop_.Check();
  pauses_.Finish();
  jit_.Finish();
  for (const ProcessKey key : AllocatingProcesses()) EndAllocations(key);
  for (const auto& [key, missed] : missed_) CountExceptionsBehindTheLast(key);
  for (const ProcessKey key : InOrder(exceptions_.processes())) {
    exceptions_.GiveWaiting(key);
    PublishExceptionFactor(key);
  }
}

std::map<std::string, uint64_t> RuntimeWatch::PauseCounts() const {
  if (!options_.hooks.suspensions) return {};
  std::map<std::string, uint64_t> counts = pauses_.counters().ByName();
  AddPlanterCounts(planter_.counters().detachments, counts);
  return counts;
}

std::map<std::string, uint64_t> RuntimeWatch::JitCounts() const {
  if (!options_.hooks.compilations) return {};
  std::map<std::string, uint64_t> counts = jit_.counters().ByName();
  counts["entry_probe_detachments"] = planter_.counters().left_out;
  AddPlanterCounts(planter_.counters().detachments, counts);
  return counts;
}

std::map<std::string, uint64_t> RuntimeWatch::AllocationCounts() const {
  if (!options_.hooks.allocations) return {};
  std::map<std::string, uint64_t> counts = allocations_.counters().ByName();
  counts["estimated_bytes"] = static_cast<uint64_t>(estimated_bytes_);
  counts["counted_bytes"] = planter_.counters().counted_bytes;
  AddPlanterCounts(planter_.counters().estimated_detachments, counts);
  return counts;
}

std::map<std::string, uint64_t> RuntimeWatch::ExceptionCounts() const {
  if (!options_.hooks.exceptions) return {};
  std::map<std::string, uint64_t> counts = exceptions_.counters().ByName();
  counts["estimated"] = static_cast<uint64_t>(std::llround(estimated_thrown_));
  AddPlanterCounts(planter_.counters().estimated_detachments, counts);
  return counts;
}

std::map<std::string, uint64_t> RuntimeWatch::rethrown() const {
  std::map<std::string, uint64_t> counts;
  for (const auto& [type, count] : rethrown_) counts[type] = static_cast<uint64_t>(std::llround(count));
  return counts;
}

void RuntimeWatch::AddPlanterCounts(const HookPlanterCounters::Detachments& detachments,
                                    std::map<std::string, uint64_t>& counts) const {
  const HookPlanterCounters& planter = planter_.counters();
  counts["images_hooked"] = planter.images_hooked;
  counts["images_refused"] = planter.images_refused;
  counts["detachments"] = detachments.times;
  counts["detached_ms"] = detachments.detached_ns / 1'000'000;
  counts["hits_while_detached"] = planter.not_admitted;
  counts["hits_while_planting"] = planter.while_planting;
}

}  // namespace clrsampler
