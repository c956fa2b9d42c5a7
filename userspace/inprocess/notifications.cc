#include "inprocess/notifications.h"

#include "inprocess/il_maps.h"
#include "inprocess/names.h"

namespace clrsampler {
namespace {

constinit Session g_session;

constexpr int kOldestGeneration = 2;  // above it come the heaps of large and of pinned objects
// No configuration of the runtime makes the large object heap begin at less.
constexpr size_t kSmallestLargeObject = 85'000;

using Bool = int32_t;

void Send(InprocessKind kind, uint64_t first = 0, uint64_t second = 0, uint64_t third = 0) {
  if (!g_session.Wants(kind)) return;
  InprocessMessage message{.kind = kind, .values = {first, second, third, 0}};
  g_session.Send(message);
}

void SendFunction(InprocessKind kind, RuntimeId function, Hresult result = kOk) {
  if (!g_session.Wants(kind)) return;
  FunctionName name;
  NameFunction(g_session.info(), function, name);
  InprocessMessage message{.kind = kind,
                           .values = {function, name.module, name.token, static_cast<uint32_t>(result)},
                           .texts = {name.type.text(), name.method.text()}};
  g_session.Send(message);
}

void SendDynamicFunction(InprocessKind kind, RuntimeId function, Hresult result) {
  if (!g_session.Wants(kind)) return;
  FunctionName name;
  NameDynamicFunction(g_session.info(), function, name);
  InprocessMessage message{
      .kind = kind, .values = {function, 0, 0, static_cast<uint32_t>(result)}, .texts = {{}, name.method.text()}};
  g_session.Send(message);
}

void SendClass(InprocessKind kind, RuntimeId first, RuntimeId type, uint64_t second = 0, uint64_t third = 0) {
  if (!g_session.Wants(kind)) return;
  NameBuffer name;
  NameClass(g_session.info(), type, name);
  InprocessMessage message{.kind = kind, .values = {first, second, third, 0}, .texts = {name.text(), {}}};
  g_session.Send(message);
}

void SendModule(InprocessKind kind, RuntimeId module, Hresult result) {
  if (!g_session.Wants(kind)) return;
  NameBuffer path;
  RuntimeId assembly = 0;
  NameModule(g_session.info(), module, path, assembly);
  InprocessMessage message{
      .kind = kind, .values = {module, static_cast<uint32_t>(result), assembly, 0}, .texts = {path.text(), {}}};
  g_session.Send(message);
}

void SendAssembly(InprocessKind kind, RuntimeId assembly, Hresult result) {
  if (!g_session.Wants(kind)) return;
  NameBuffer name;
  NameAssembly(g_session.info(), assembly, name);
  InprocessMessage message{
      .kind = kind, .values = {assembly, static_cast<uint32_t>(result), 0, 0}, .texts = {name.text(), {}}};
  g_session.Send(message);
}

// Slots with nothing but their kind, with one identity, and with one function.
template <InprocessKind kKind>
Hresult Plain(void*) {
  Send(kKind);
  return kOk;
}
template <InprocessKind kKind>
Hresult OfId(void*, RuntimeId id) {
  Send(kKind, id);
  return kOk;
}
template <InprocessKind kKind>
Hresult OfFunction(void*, RuntimeId function) {
  SendFunction(kKind, function);
  return kOk;
}

Hresult ThreadAssignedToOSThread(void*, RuntimeId thread, uint32_t number) {
  Send(InprocessKind::kThreadAssignedToOSThread, thread, number);
  return kOk;
}

Hresult ThreadNameChanged(void*, RuntimeId thread, uint32_t count, const char16_t* units) {
  if (!g_session.Wants(InprocessKind::kThreadNameChanged)) return kOk;
  NameBuffer name;
  if (units != nullptr) name.Append(units, count);
  InprocessMessage message{
      .kind = InprocessKind::kThreadNameChanged, .values = {thread, 0, 0, 0}, .texts = {name.text(), {}}};
  g_session.Send(message);
  return kOk;
}

Hresult AssemblyLoadFinished(void*, RuntimeId assembly, Hresult result) {
  SendAssembly(InprocessKind::kAssemblyLoadFinished, assembly, result);
  return kOk;
}
Hresult AssemblyUnloadFinished(void*, RuntimeId assembly, Hresult result) {
  Send(InprocessKind::kAssemblyUnloadFinished, assembly, static_cast<uint32_t>(result));
  return kOk;
}
Hresult ModuleLoadFinished(void*, RuntimeId module, Hresult result) {
  SendModule(InprocessKind::kModuleLoadFinished, module, result);
  return kOk;
}
Hresult ModuleUnloadStarted(void*, RuntimeId module) {
  EndWalkOfILMaps();
  SendModule(InprocessKind::kModuleUnloadStarted, module, kOk);
  return kOk;
}
Hresult ModuleUnloadFinished(void*, RuntimeId module, Hresult result) {
  Send(InprocessKind::kModuleUnloadFinished, module, static_cast<uint32_t>(result));
  return kOk;
}
Hresult ModuleAttachedToAssembly(void*, RuntimeId module, RuntimeId assembly) {
  Send(InprocessKind::kModuleAttachedToAssembly, module, assembly);
  return kOk;
}

Hresult ClassLoadFinished(void*, RuntimeId type, Hresult result) {
  SendClass(InprocessKind::kClassLoadFinished, type, type, static_cast<uint32_t>(result));
  return kOk;
}
Hresult ClassUnloadStarted(void*, RuntimeId type) {
  SendClass(InprocessKind::kClassUnloadStarted, type, type);
  return kOk;
}

Hresult JitCompilationStarted(void*, RuntimeId function, Bool /*may_block*/) {
  SendFunction(InprocessKind::kJitCompilationStarted, function);
  return kOk;
}
Hresult JitCompilationFinished(void*, RuntimeId function, Hresult result, Bool /*may_block*/) {
  SendFunction(InprocessKind::kJitCompilationFinished, function, result);
  if (Succeeded(result)) SendILMaps(g_session, function);
  return kOk;
}
Hresult DynamicMethodJitStarted(void*, RuntimeId function, Bool /*may_block*/, const void* /*il*/, uint32_t /*bytes*/) {
  SendDynamicFunction(InprocessKind::kDynamicMethodJitStarted, function, kOk);
  return kOk;
}
Hresult DynamicMethodJitFinished(void*, RuntimeId function, Hresult result, Bool /*may_block*/) {
  SendDynamicFunction(InprocessKind::kDynamicMethodJitFinished, function, result);
  return kOk;
}
// It may be inlined: the runtime asks for leave whenever it tells of compilations.
Hresult JitInlining(void*, RuntimeId /*caller*/, RuntimeId /*callee*/, Bool* may) {
  *may = 1;
  return kOk;
}

Hresult ExceptionThrown(void*, RuntimeId object) {
  if (!g_session.Wants(InprocessKind::kExceptionThrown)) return kOk;
  RuntimeId type = 0;
  CallSlot(g_session.info(), kGetClassFromObject, object, &type);
  SendClass(InprocessKind::kExceptionThrown, object, type, type);
  return kOk;
}
Hresult ExceptionCatcherEnter(void*, RuntimeId function, RuntimeId /*object*/) {
  SendFunction(InprocessKind::kExceptionCatcherEnter, function);
  return kOk;
}

Hresult RuntimeSuspendStarted(void*, uint32_t reason) {
  Send(InprocessKind::kRuntimeSuspendStarted, reason);
  return kOk;
}

Hresult GarbageCollectionStarted(void*, int32_t count, const Bool* collected, uint32_t reason) {
  int oldest = 0;
  for (int i = 0; i < count && i <= kOldestGeneration; ++i) {
    if (collected[i] != 0) oldest = i;
  }
  Send(InprocessKind::kGarbageCollectionStarted, static_cast<uint64_t>(oldest), reason);
  return kOk;
}
Hresult MovedReferences2(void*, uint32_t count, const RuntimeId* /*from*/, const RuntimeId* /*to*/,
                         const size_t* lengths) {
  if (!g_session.Wants(InprocessKind::kMovedReferences)) return kOk;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) bytes += lengths[i];
  Send(InprocessKind::kMovedReferences, count, bytes);
  return kOk;
}
// The runtime calls every profiler with what any of them has asked for.
bool IsLarge(RuntimeId object, size_t bytes) {
  if (bytes < kSmallestLargeObject) return false;
  GenerationRange range{};
  return !Succeeded(CallSlot(g_session.info(), kGetObjectGeneration, object, &range)) ||
         range.generation >= kLargeObjectHeap;
}
Hresult ObjectAllocated(void*, RuntimeId object, RuntimeId type) {
  if (!g_session.Wants(InprocessKind::kObjectAllocated)) return kOk;
  size_t bytes = 0;
  CallSlot(g_session.info(), kGetObjectSize2, object, &bytes);
  if (!g_session.WantsEveryObject() && !IsLarge(object, bytes)) return kOk;
  SendClass(InprocessKind::kObjectAllocated, object, type, type, bytes);
  return kOk;
}

template <typename... Arguments>
void* Slot(Hresult (*function)(void*, Arguments...)) {
  return reinterpret_cast<void*>(function);
}

void FillExceptions(void** table) {
  table[kExceptionThrown] = Slot(ExceptionThrown);
  table[kExceptionSearchFunctionEnter] = Slot(OfFunction<InprocessKind::kExceptionSearchFunctionEnter>);
  table[kExceptionSearchFunctionLeave] = Slot(Plain<InprocessKind::kExceptionSearchFunctionLeave>);
  table[kExceptionSearchFilterEnter] = Slot(OfFunction<InprocessKind::kExceptionSearchFilterEnter>);
  table[kExceptionSearchFilterLeave] = Slot(Plain<InprocessKind::kExceptionSearchFilterLeave>);
  table[kExceptionSearchCatcherFound] = Slot(OfFunction<InprocessKind::kExceptionSearchCatcherFound>);
  table[kExceptionUnwindFunctionEnter] = Slot(OfFunction<InprocessKind::kExceptionUnwindFunctionEnter>);
  table[kExceptionUnwindFunctionLeave] = Slot(Plain<InprocessKind::kExceptionUnwindFunctionLeave>);
  table[kExceptionUnwindFinallyEnter] = Slot(OfFunction<InprocessKind::kExceptionUnwindFinallyEnter>);
  table[kExceptionUnwindFinallyLeave] = Slot(Plain<InprocessKind::kExceptionUnwindFinallyLeave>);
  table[kExceptionCatcherEnter] = Slot(ExceptionCatcherEnter);
  table[kExceptionCatcherLeave] = Slot(Plain<InprocessKind::kExceptionCatcherLeave>);
}

void FillCode(void** table) {
  table[kAssemblyLoadFinished] = Slot(AssemblyLoadFinished);
  table[kAssemblyUnloadFinished] = Slot(AssemblyUnloadFinished);
  table[kModuleLoadFinished] = Slot(ModuleLoadFinished);
  table[kModuleUnloadStarted] = Slot(ModuleUnloadStarted);
  table[kModuleUnloadFinished] = Slot(ModuleUnloadFinished);
  table[kModuleAttachedToAssembly] = Slot(ModuleAttachedToAssembly);
  table[kClassLoadFinished] = Slot(ClassLoadFinished);
  table[kClassUnloadStarted] = Slot(ClassUnloadStarted);
  table[kJITCompilationStarted] = Slot(JitCompilationStarted);
  table[kJITCompilationFinished] = Slot(JitCompilationFinished);
  table[kJITInlining] = Slot(JitInlining);
  table[kFunctionUnloadStarted] = Slot(OfFunction<InprocessKind::kFunctionUnloadStarted>);
  table[kDynamicMethodJITCompilationStarted] = Slot(DynamicMethodJitStarted);
  table[kDynamicMethodJITCompilationFinished] = Slot(DynamicMethodJitFinished);
  table[kDynamicMethodUnloaded] = Slot(OfId<InprocessKind::kDynamicMethodUnloaded>);
}

void FillExecution(void** table) {
  table[kThreadCreated] = Slot(OfId<InprocessKind::kThreadCreated>);
  table[kThreadDestroyed] = Slot(OfId<InprocessKind::kThreadDestroyed>);
  table[kThreadAssignedToOSThread] = Slot(ThreadAssignedToOSThread);
  table[kThreadNameChanged] = Slot(ThreadNameChanged);
  table[kRuntimeSuspendStarted] = Slot(RuntimeSuspendStarted);
  table[kRuntimeSuspendFinished] = Slot(Plain<InprocessKind::kRuntimeSuspendFinished>);
  table[kRuntimeSuspendAborted] = Slot(Plain<InprocessKind::kRuntimeSuspendAborted>);
  table[kRuntimeResumeStarted] = Slot(Plain<InprocessKind::kRuntimeResumeStarted>);
  table[kRuntimeResumeFinished] = Slot(Plain<InprocessKind::kRuntimeResumeFinished>);
  table[kRuntimeThreadSuspended] = Slot(OfId<InprocessKind::kRuntimeThreadSuspended>);
  table[kRuntimeThreadResumed] = Slot(OfId<InprocessKind::kRuntimeThreadResumed>);
  table[kGarbageCollectionStarted] = Slot(GarbageCollectionStarted);
  table[kGarbageCollectionFinished] = Slot(Plain<InprocessKind::kGarbageCollectionFinished>);
  table[kMovedReferences2] = Slot(MovedReferences2);
  table[kObjectAllocated] = Slot(ObjectAllocated);
}

}  // namespace

Session& TheSession() { return g_session; }

void FillNotifications(void** table) {
  FillExceptions(table);
  FillCode(table);
  FillExecution(table);
}

}  // namespace clrsampler
