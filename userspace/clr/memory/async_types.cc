#include "clr/memory/async_types.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "clr/memory/runtime_self_test.h"

namespace clrsampler {
namespace {

struct Known {
  absl::string_view name;
  AsyncKind kind;
};
constexpr Known kKnown[] = {
    {"System.Action", AsyncKind::kAction},
    {"System.Collections.Generic.List`1", AsyncKind::kSeveral},
    {"System.Runtime.CompilerServices.AsyncHelpers+RuntimeAsyncTask`1", AsyncKind::kRuntimeTask},
    {"System.Runtime.CompilerServices.AsyncHelpers+ValueTaskSourceContinuation", AsyncKind::kHelperContinuation},
    {"System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncProfilerAsyncStateMachineBox`1", AsyncKind::kBox},
    {"System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1", AsyncKind::kBox},
    {"System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+DebugFinalizableAsyncStateMachineBox`1",
     AsyncKind::kBox},
    {"System.Runtime.CompilerServices.Continuation", AsyncKind::kContinuation},
    {"System.Runtime.CompilerServices.RuntimeAsyncTaskContinuation", AsyncKind::kHelperContinuation},
    {"System.Threading.Tasks.AwaitTaskContinuation", AsyncKind::kAwait},
    {"System.Threading.Tasks.SynchronizationContextAwaitTaskContinuation", AsyncKind::kAwait},
    {"System.Threading.Tasks.Task+CancellationPromise`1", AsyncKind::kPromise},
    {"System.Threading.Tasks.Task+SetOnCountdownMres", AsyncKind::kThread},
    {"System.Threading.Tasks.Task+SetOnInvokeMres", AsyncKind::kThread},
    {"System.Threading.Tasks.Task+TwoTaskWhenAnyPromise`1", AsyncKind::kPromise},
    {"System.Threading.Tasks.Task+WhenAllPromise", AsyncKind::kPromise},
    {"System.Threading.Tasks.Task+WhenAllPromise`1", AsyncKind::kPromise},
    {"System.Threading.Tasks.TaskFactory+CompleteOnCountdownPromise", AsyncKind::kPromise},
    {"System.Threading.Tasks.TaskFactory+CompleteOnCountdownPromise`1", AsyncKind::kPromise},
    {"System.Threading.Tasks.TaskFactory+CompleteOnInvokePromise`1", AsyncKind::kPromise},
    {"System.Threading.Tasks.TaskSchedulerAwaitTaskContinuation", AsyncKind::kAwait},
    {"System.Threading.Tasks.UnwrapPromise`1", AsyncKind::kPromise},
};

// Fields of Task and of what it leads to. Source: src/libraries/System.Private.CoreLib/src/System/Threading/Tasks.
constexpr uint32_t kTaskContinuation = 32, kTaskState = 16, kTaskFlags = 52, kAwaitAction = 16;
// Fields of Continuation, ResumeInfo and RuntimeAsyncTaskContinuation of .NET 11.0.0. Source: class AsyncHelpers in
// src/coreclr/System.Private.CoreLib/src/System/Runtime/CompilerServices.
constexpr uint32_t kNext = 8, kResumeInfo = 16, kDiagnosticIp = 8, kOwner = 40;
constexpr uint32_t kParent = 16;             // of a MethodTable
constexpr uint32_t kRowShift = 8;            // of its second flags, .NET 9 and newer
constexpr uint32_t kFirstRuntimeAsync = 11;  // the first major version with such methods
constexpr uint32_t kMachineArgument = 1;     // of AsyncStateMachineBox<TResult, TStateMachine>

uint32_t ActionTarget(uint32_t major) { return major >= 11 ? 16 : 8; }

// The runtime makes types of continuations, one for each shape of what is kept. They have no row in any metadata.
std::optional<AsyncType> ReadUnnamed(RuntimeMemory& runtime, uint64_t method_table) {
  struct {
    uint32_t flags, base_size, flags2, counts;
    uint64_t parent;
  } table;
  static_assert(offsetof(decltype(table), parent) == kParent);
  if (runtime.layout().major < kFirstRuntimeAsync) return std::nullopt;
  if (!runtime.memory().Read(method_table, std::as_writable_bytes(std::span(&table, 1)))) return std::nullopt;
  if ((table.flags & runtime.layout().method_table.collectible) != 0 || table.flags2 >> kRowShift != 0)
    return std::nullopt;
  const std::optional<RuntimeType> base = runtime.TypeOf(table.parent);
  if (!base || base->module != kCoreLib || AsyncKindOf(base->name) != AsyncKind::kContinuation) return std::nullopt;
  AsyncType result;
  result.kind = AsyncKind::kContinuation;
  return result;
}

std::optional<AsyncType> Read(RuntimeMemory& runtime, uint64_t method_table) {
  const std::optional<RuntimeType> type = runtime.TypeOf(method_table);
  if (!type) return ReadUnnamed(runtime, method_table);
  if (type->collectible) return std::nullopt;
  AsyncType result;
  if (type->module == kCoreLib) result.kind = AsyncKindOf(type->name);
  if (result.kind != AsyncKind::kBox) return result;
  if (type->arguments.size() <= kMachineArgument) return std::nullopt;
  const std::optional<RuntimeType> machine = runtime.TypeOf(type->arguments[kMachineArgument]);
  if (!machine) return std::nullopt;
  result.machine_is_class = machine->is_class;
  result.bytes = type->object_bytes;
  MethodName& method = result.method;
  method.module = machine->module;
  method.type = machine->name;
  method.method = "MoveNext";
  method.parameters.emplace();
  method.return_type = "System.Void";
  for (const uint64_t argument : machine->arguments) {
    std::optional<std::string> text = runtime.TypeName(argument);
    if (!text) return std::nullopt;
    method.type_args.push_back(*std::move(text));
  }
  return result;
}

}  // namespace

AsyncKind AsyncKindOf(absl::string_view type) {
  const Known* known = std::ranges::lower_bound(kKnown, type, {}, &Known::name);
  return known != std::end(kKnown) && known->name == type ? known->kind : AsyncKind::kOther;
}

bool IsDispatcher(const MethodName& method) {
  return method.module == kCoreLib && AsyncKindOf(method.type) == AsyncKind::kRuntimeTask &&
         (method.method == "DispatchContinuations" || method.method == "InstrumentedDispatchContinuations");
}

bool IsResumer(const MethodName& method) {
  if (method.module != kCoreLib) return false;
  if (AsyncKindOf(method.type) == AsyncKind::kBox) return true;
  return method.type == "System.Threading.ExecutionContext" &&
         (method.method == "RunInternal" || method.method == "RunFromThreadPoolDispatchLoop");
}

// Where fields of Task and Continuation are is known for these only.
bool AsyncTypes::KnowsVersionOf(RuntimeMemory& runtime) {
  const RuntimeLayout& layout = runtime.layout();
  return !layout.unverified && layout.major >= kOldestKnownMajor && layout.major <= kNewestKnownMajor;
}

std::optional<wire_async_layouts> AsyncTypes::LayoutOf(RuntimeMemory& runtime) {
  const RuntimeLayout& layout = runtime.layout();
  if (!KnowsVersionOf(runtime)) return std::nullopt;
  const std::shared_ptr<const RuntimeModule> core = runtime.CoreLib();
  if (core == nullptr || !core->names.tables) return std::nullopt;
  wire_async_layouts wire{};
  wire.tasks.row_shift = layout.method_table.rid_in_flags2 ? kRowShift : 16;
  wire.tasks.task_link = kTaskContinuation;
  wire.tasks.task_flags = kTaskFlags;
  wire.tasks.action_link = ActionTarget(layout.major);
  wire.tasks.await_link = kAwaitAction;
  wire.runtime.state_link = kTaskState;
  wire.runtime.parent_link = kParent;
  wire.runtime.next_link = kNext;
  wire.runtime.info_link = kResumeInfo;
  wire.runtime.owner_link = kOwner;
  wire.runtime.suspended_at = kDiagnosticIp;
  uint32_t boxes = 0, awaits = 0, helpers = 1;
  const auto note = [&](uint32_t row, absl::string_view name) {
    const AsyncKind kind = AsyncKindOf(name);
    if (kind == AsyncKind::kAction) wire.tasks.action_row = row;
    if (kind == AsyncKind::kBox && boxes < WIRE_ASYNC_BOX_ROWS) wire.tasks.box_rows[boxes++] = row;
    if (kind == AsyncKind::kRuntimeTask && layout.major >= kFirstRuntimeAsync) wire.runtime.task_row = row;
    if (kind == AsyncKind::kContinuation) wire.runtime.continuation_rows[0] = row;
    if (kind == AsyncKind::kHelperContinuation && helpers < WIRE_ASYNC_CONTINUATION_ROWS) {
      wire.runtime.continuation_rows[helpers++] = row;
    }
    if (kind == AsyncKind::kAwait && awaits < WIRE_ASYNC_AWAIT_ROWS) wire.tasks.await_rows[awaits++] = row;
    return true;
  };
  if (!core->names.tables->ForEachTypeName(note)) return std::nullopt;
  if (boxes == 0) return std::nullopt;
  if (wire.runtime.task_row == 0 || wire.runtime.continuation_rows[0] == 0) wire.runtime = {};
  return wire;
}

const AsyncType& AsyncTypes::At(RuntimeMemory& runtime, uint64_t method_table) {
  main_loop_.Check();
  if (const auto known = types_.find(method_table); known != types_.end()) return known->second;
  AsyncType type = Read(runtime, method_table).value_or(AsyncType{});
  size_t bytes = type.method.module.size() + type.method.type.size();
  for (const std::string& argument : type.method.type_args) bytes += argument.size();
  if (types_.size() >= kMaxTypes || bytes_ + bytes > kMaxTextBytes) {
    types_.clear();
    bytes_ = 0;
  }
  bytes_ += bytes;
  return types_[method_table] = std::move(type);
}

const AsyncType* AsyncTypes::Find(uint64_t method_table) const {
  const auto known = types_.find(method_table);
  return known == types_.end() ? nullptr : &known->second;
}

}  // namespace clrsampler
