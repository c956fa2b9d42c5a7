#include "pipeline/async_callers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clr/memory/memory_methods.h"
#include "symbols/awaits.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kBoxText = "StateMachineBox";
constexpr absl::string_view kDispatcherText = "DispatchContinuations";
constexpr absl::string_view kStubText = "AsyncResume";
constexpr absl::string_view kAsyncHelpers = "System.Runtime.CompilerServices.AsyncHelpers";

}  // namespace

std::map<std::string, uint64_t> AsyncCallersCounters::ByName() const {
  return {{"resumed", resumed},           {"found", found},     {"not_awaited", not_awaited},
          {"unknown", unknown},           {"between", between}, {"ends_in_several", ends_in_several},
          {"ends_unknown", ends_unknown}, {"callers", callers}, {"stopped", stopped}};
}

AsyncCallers::OfProcess* AsyncCallers::Of(const Process& process) {
  std::unique_ptr<OfProcess>& known = processes_.Of(process);
  if (known == nullptr || known->exec_count != process.exec_count) {
    known = std::make_unique<OfProcess>();
    known->exec_count = process.exec_count;
  }
  return known.get();
}

void AsyncCallers::Learn(const Process& process) {
  main_loop_.Check();
  RuntimeMemory* runtime = parts_.memory.RuntimeOf(process.key);
  if (runtime == nullptr || process.exec_announced != MonotonicTime::Max()) return;
  OfProcess& of = *Of(process);
  if (of.layout) return;
  const std::optional<wire_async_layouts> layout = AsyncTypes::LayoutOf(*runtime);
  // A runtime that is starting may not have its class library yet.
  if (!layout && AsyncTypes::KnowsVersionOf(*runtime) && ++of.tries < kMaxTries) return;
  of.layout = layout.value_or(wire_async_layouts{});
  parts_.tell(process, layout);
}

void AsyncCallers::Observe(const Process& process, const RawStack& raw) {
  main_loop_.Check();
  Learn(process);
  RuntimeMemory* runtime = parts_.memory.RuntimeOf(process.key);
  if (runtime == nullptr || raw.async_objects().empty()) return;
  OfProcess& of = *Of(process);
  for (const wire_async_object& object : raw.async_objects()) of.types.At(*runtime, object.words[0]);
  const std::vector<uint64_t> suspended = AsyncObjects::SuspendedAt(raw.async_objects());
  if (suspended.empty()) return;
  parts_.observe(process, {suspended, {}, MonotonicTime{raw.sample().header.time_ns}});
  if (of.suspended.size() >= kMaxKnown) of.suspended.clear();
  for (const uint64_t address : suspended) {
    Suspended& known = of.suspended[address];
    if (known == Suspended::kNotKnown) known = SuspendedAt(*runtime, address);
  }
}

// Code that can be freed may be something else by now.
AsyncCallers::Suspended AsyncCallers::SuspendedAt(RuntimeMemory& runtime, uint64_t address) {
  const std::optional<ManagedCode> found = runtime.Find(address);
  if (!found || found->transient) return Suspended::kNotKnown;
  if (found->kind != ManagedCode::Kind::kMethod && found->kind != ManagedCode::Kind::kPrecompiled) {
    return Suspended::kNotKnown;
  }
  // A method that only returns a task is over; the thunk awaits that task for it.
  const bool helper = found->name.async_body == AsyncBody::kThunk ||
                      (found->name.module == kCoreLib && found->name.type == kAsyncHelpers);
  return helper ? Suspended::kHelper : Suspended::kMethod;
}

// The role of the code for async methods.
const AsyncCallers::Code& AsyncCallers::CodeAt(const Process& process, OfProcess& of, const UserFrame& frame) {
  static const Code* const kNone = new Code();
  if (const auto known = of.code.find(frame.lookup_address); known != of.code.end()) return *known->second;
  RuntimeMemory* runtime = parts_.memory.RuntimeOf(process.key);
  const std::optional<ManagedCode> found = runtime == nullptr ? std::nullopt : runtime->Find(frame.lookup_address);
  // Code that can be freed may be something else the next time.
  if (!found || found->transient) return *kNone;
  Code code;
  if (IsResumer(found->name)) {
    code.role = Role::kResumer;
  } else if (IsDispatcher(found->name)) {
    code.role = Role::kDispatcher;
  } else if (found->name.method == "MoveNext") {
    code.role = Role::kMachine;
    code.name = found->name;
  }
  return *(of.code[frame.lookup_address] = std::make_unique<const Code>(std::move(code)));
}

// The innermost one counts. Methods above it on the same stack have only ended, and resumed it by that.
std::optional<AsyncCallers::Resumed> AsyncCallers::FindResumed(const Process& process, OfProcess& of,
                                                               const UserStack& user, const NamedStack& named,
                                                               MonotonicTime time) {
  if (of.code.size() >= kMaxKnown) of.code.clear();
  const auto code_at = [&](size_t i) -> const Code& { return CodeAt(process, of, user.frames[i]); };
  for (size_t i = 0; i < user.frames.size(); ++i) {
    if (!MayResume(named.frames[named.places[i]])) continue;
    const Role role = code_at(i).role;
    if (role == Role::kDispatcher) {
      // It calls the stub, which calls the method.
      Resumed resumed{i, i};
      if (i > 1 && IsResumptionStub(process, user.frames[i - 1], time)) resumed = {i - 1, i, nullptr, true};
      return resumed;
    }
    if (role != Role::kResumer) continue;
    // An execution context runs whatever is given to it.
    const bool is_context = !absl::StrContains(parts_.frames.at(named.frames[named.places[i]]).text, kBoxText);
    Resumed resumed{i, i};
    if (i > 0) {
      const Code& code = code_at(i - 1);
      if (code.role == Role::kMachine) resumed = {i - 1, i, &code};
    }
    if (resumed.code == nullptr && is_context) continue;
    return resumed;
  }
  return std::nullopt;
}

bool AsyncCallers::IsResumptionStub(const Process& process, const UserFrame& frame, MonotonicTime time) {
  const Frame& named = parts_.frames.at(parts_.name(process, frame, time));
  return named.identity.body == AsyncBody::kResumptionStub || absl::StrContains(named.text, kStubText);
}

bool AsyncCallers::MayResume(FrameId frame) {
  if (may_resume_.size() <= frame) may_resume_.resize(frame + 1, -1);
  int8_t& known = may_resume_[frame];
  if (known < 0) {
    const absl::string_view text = parts_.frames.at(frame).text;
    known = absl::StrContains(text, kBoxText) || absl::StrContains(text, "ExecutionContext") ||
                    absl::StrContains(text, kDispatcherText)
                ? 1
                : 0;
  }
  return known != 0;
}

std::optional<AsyncChain> AsyncCallers::ChainOf(const OfProcess& of, const RawStack& raw, const UserStack& user,
                                                const Resumed& resumed) {
  // The unwinder has found each of its frames by exact data, and nothing is in doubt there.
  for (size_t i = resumed.method; i <= resumed.resumer; ++i) {
    if (user.frames[i].doubt != FrameDoubt::kNone || user.frames[i].sp == 0) return std::nullopt;
  }
  const std::optional<StackPart> part = StackPartOf(user, resumed.dispatched ? resumed.resumer : resumed.method);
  if (!part) return std::nullopt;
  stack_.Assign(raw);
  const auto type_of = [&](uint64_t method_table) { return of.types.Find(method_table); };
  const AsyncObjects objects(raw.async_objects(), *of.layout, type_of);
  if (resumed.dispatched) return objects.OfDispatcher(stack_, part->begin, part->end);
  return objects.OfMachine(stack_, part->begin, part->end, resumed.code->name);
}

std::span<const FrameId> AsyncCallers::Apply(const Process& process, const RawStack& raw, const UserStack& user,
                                             const NamedStack& named, bool stopped) {
  main_loop_.Check();
  const std::unique_ptr<OfProcess>* const found = processes_.Find(process.key);
  if (found == nullptr || !(*found)->layout || named.places.size() != user.frames.size()) {
    return named.frames;
  }
  OfProcess& of = **found;
  const MonotonicTime time{raw.sample().header.time_ns};
  const std::optional<Resumed> resumed = FindResumed(process, of, user, named, time);
  if (!resumed) return named.frames;
  ++counters_.resumed;
  if (!resumed->known()) {
    ++counters_.between;
    return named.frames;
  }
  if (stopped) {
    ++counters_.stopped;
    return named.frames;
  }
  const std::optional<AsyncChain> chain = ChainOf(of, raw, user, *resumed);
  frames_.clear();
  AsyncEnd end = chain ? chain->end : AsyncEnd::kUnknown;
  for (size_t i = 0; chain && i < chain->callers.size(); ++i) {
    if (Append(process, of, chain->callers[i], time)) continue;
    end = AsyncEnd::kUnknown;
    break;
  }
  if (frames_.empty()) {
    const bool awaited = end == AsyncEnd::kUnknown || end == AsyncEnd::kSeveral;
    ++(awaited ? counters_.unknown : counters_.not_awaited);
    return named.frames;
  }
  return Put(end, named, named.places[resumed->method]);
}

bool AsyncCallers::Append(const Process& process, const OfProcess& of, const AsyncCaller& caller, MonotonicTime time) {
  const NameBudget::Charge charge(parts_.budget, process, time);
  std::optional<FrameId> frame;
  if (caller.box != nullptr) {
    frame = parts_.memory.MethodFrame(process.key, caller.box->method);
    if (!frame || parts_.frames.IsRefusal(*frame)) return false;
  } else {
    const auto known = of.suspended.find(caller.suspended_at);
    if (known == of.suspended.end() || known->second == Suspended::kNotKnown) return false;
    if (known->second == Suspended::kHelper) return true;
    frame = parts_.name(process, {.address = caller.suspended_at, .lookup_address = caller.suspended_at}, time);
    if (!parts_.frames.at(*frame).named()) return false;
  }
  const FrameId marked = Marked(*frame);
  if (parts_.frames.IsRefusal(marked)) return false;
  frames_.push_back(marked);
  return true;
}

// The frames of the awaiters, outermost first, and behind them those of `named` from `first` on.
std::span<const FrameId> AsyncCallers::Put(AsyncEnd end, const NamedStack& named, size_t first) {
  ++counters_.found;
  counters_.callers += frames_.size();
  if (end == AsyncEnd::kSeveral) {
    ++counters_.ends_in_several;
    frames_.push_back(Mark(kAwaitedBySeveral));
  } else if (end == AsyncEnd::kUnknown) {
    ++counters_.ends_unknown;
    frames_.push_back(Mark(kAwaiterNotKnown));
  }
  std::reverse(frames_.begin(), frames_.end());
  frames_.insert(frames_.end(), named.frames.begin() + static_cast<std::ptrdiff_t>(first), named.frames.end());
  return frames_;
}

// The same method without the code that it would have if it ran.
FrameId AsyncCallers::Marked(FrameId id) {
  const auto known = marked_.find(id);
  if (known != marked_.end()) return known->second;
  Frame frame = parts_.frames.at(id);
  absl::StrAppend(&frame.text, kAwaits);
  frame.tier.clear();
  frame.symbol.clear();
  frame.image = {};
  frame.address = 0;
  frame.size = 0;
  frame.identity = {};
  const FrameId marked = parts_.frames.Intern(std::move(frame));
  if (!parts_.frames.IsRefusal(marked)) marked_[id] = marked;
  return marked;
}

FrameId AsyncCallers::Mark(absl::string_view text) {
  return parts_.frames.Intern(Frame{FrameKind::kMark, NameSource::kNone, std::string(text), "", ""});
}

}  // namespace clrsampler
