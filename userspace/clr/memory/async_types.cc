#include "clr/memory/async_types.h"

#include <algorithm>
#include <iterator>
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
    {"System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncProfilerAsyncStateMachineBox`1", AsyncKind::kBox},
    {"System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1", AsyncKind::kBox},
    {"System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+DebugFinalizableAsyncStateMachineBox`1",
     AsyncKind::kBox},
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

// Bits of Task and of the types that it leads to: src/libraries/System.Private.CoreLib/src/System/Threading/Tasks.
constexpr uint32_t kTaskContinuation = 32, kAwaitAction = 16;
constexpr uint32_t kMostTypes = 1 << 16;  // CoreLib defines some 4,000
constexpr uint32_t kMachineArgument = 1;  // of AsyncStateMachineBox<TResult, TStateMachine>

uint32_t ActionTarget(uint32_t major) { return major >= 11 ? 16 : 8; }

std::optional<AsyncType> Read(RuntimeMemory& runtime, uint64_t method_table) {
  const std::optional<RuntimeType> type = runtime.TypeOf(method_table);
  if (!type || type->collectible) return std::nullopt;
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

bool IsResumer(const MethodName& method) {
  if (method.module != kCoreLib) return false;
  if (AsyncKindOf(method.type) == AsyncKind::kBox) return true;
  return method.type == "System.Threading.ExecutionContext" &&
         (method.method == "RunInternal" || method.method == "RunFromThreadPoolDispatchLoop");
}

std::optional<wire_async_layout> AsyncTypes::LayoutOf(RuntimeMemory& runtime) {
  const RuntimeLayout& layout = runtime.layout();
  if (layout.major < 8 || layout.major > 11 || layout.machine != ElfMachine::kX64) return std::nullopt;
  const std::shared_ptr<const RuntimeModule> core = runtime.CoreLib();
  if (core == nullptr || !core->names.tables) return std::nullopt;
  wire_async_layout wire{};
  wire.row_shift = layout.method_table.rid_in_flags2 ? 8 : 16;
  wire.task_link = kTaskContinuation;
  wire.action_link = ActionTarget(layout.major);
  wire.await_link = kAwaitAction;
  uint32_t boxes = 0, awaits = 0;
  const MetadataTables& tables = *core->names.tables;
  std::string name;
  const uint32_t rows = std::min<uint32_t>(tables.rows(MetadataTable::kTypeDef), kMostTypes);
  for (uint32_t row = 1; row <= rows; ++row) {
    name.clear();
    if (!tables.AppendTypeName({MetadataTable::kTypeDef, row}, name)) return std::nullopt;
    const AsyncKind kind = AsyncKindOf(name);
    if (kind == AsyncKind::kAction) wire.action_row = row;
    if (kind == AsyncKind::kBox && boxes < WIRE_ASYNC_BOX_ROWS) wire.box_rows[boxes++] = row;
    if (kind == AsyncKind::kAwait && awaits < WIRE_ASYNC_AWAIT_ROWS) wire.await_rows[awaits++] = row;
  }
  if (boxes == 0) return std::nullopt;
  return wire;
}

const AsyncType& AsyncTypes::At(RuntimeMemory& runtime, uint64_t method_table) {
  if (const auto known = types_.find(method_table); known != types_.end()) return known->second;
  if (types_.size() >= kMaxTypes) types_.clear();
  return types_[method_table] = Read(runtime, method_table).value_or(AsyncType{});
}

const AsyncType* AsyncTypes::Find(uint64_t method_table) const {
  const auto known = types_.find(method_table);
  return known == types_.end() ? nullptr : &known->second;
}

}  // namespace clrsampler
