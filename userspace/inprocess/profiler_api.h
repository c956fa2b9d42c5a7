// The interface between a CoreCLR runtime and a profiler, as far as the library uses it: identities, results, masks,
// and which slot of which table of functions is what.
//
// A table's order is that of dotnet/runtime:src/coreclr/inc/corprof.idl and dotnet/runtime:src/coreclr/inc/cor.h, where
// a derived interface goes on behind its base. profiler_slots_test compares each number with a listing of these files.
// Functions take their object first and have the C calling convention of the platform. Identities are addresses.
#ifndef CLRSAMPLER_INPROCESS_PROFILER_API_H_
#define CLRSAMPLER_INPROCESS_PROFILER_API_H_

#include <cstddef>
#include <cstdint>

namespace clrsampler {

using Hresult = int32_t;
using RuntimeId = uintptr_t;  // FunctionID, ClassID, ModuleID, AssemblyID, ThreadID, ObjectID
using MetadataToken = uint32_t;

inline constexpr Hresult kOk = 0;
inline constexpr Hresult kNoInterface = static_cast<Hresult>(0x80004002);
inline constexpr Hresult kFailed = static_cast<Hresult>(0x80004005);
inline constexpr Hresult kNoAggregation = static_cast<Hresult>(0x80040110);
inline constexpr Hresult kClassNotAvailable = static_cast<Hresult>(0x80040111);
// CORPROF_E_PROFILER_CANCEL_ACTIVATION: the runtime goes on without the profiler, and reports no error of its own.
inline constexpr Hresult kCancelActivation = static_cast<Hresult>(0x80131375);
// CORPROF_E_RUNTIME_UNINITIALIZED, CORPROF_E_PROFILER_NOT_YET_INITIALIZED: the answer is another one soon.
inline constexpr Hresult kRuntimeStarts = static_cast<Hresult>(0x80131371);
inline constexpr Hresult kProfilerStarts = static_cast<Hresult>(0x80131373);
inline constexpr Hresult kIsArray = static_cast<Hresult>(0x80131365);  // CORPROF_E_CLASSID_IS_ARRAY

constexpr bool Succeeded(Hresult result) { return result >= 0; }

struct Guid {
  uint32_t first;
  uint16_t second, third;
  uint8_t rest[8];
  bool operator==(const Guid&) const = default;
};
static_assert(sizeof(Guid) == 16);

// The id of this profiler: the agent and CORECLR_PROFILER name it.
inline constexpr Guid kProfilerClass = {0x6c2c8f0e, 0x9d35, 0x4f4b, {0x9a, 0x1e, 0x5c, 0x33, 0x70, 0xd1, 0x0b, 0x42}};

inline constexpr Guid kUnknownInterface = {0x00000000, 0x0000, 0x0000, {0xc0, 0, 0, 0, 0, 0, 0, 0x46}};
inline constexpr Guid kClassFactoryInterface = {0x00000001, 0x0000, 0x0000, {0xc0, 0, 0, 0, 0, 0, 0, 0x46}};
// ICorProfilerCallback, and Callback2 to Callback11. Each has the slots of those before it.
inline constexpr Guid kCallbackInterfaces[] = {
    {0x176fbed1, 0xa55c, 0x4796, {0x98, 0xca, 0xa9, 0xda, 0x0e, 0xf8, 0x83, 0xe7}},
    {0x8a8cc829, 0xccf2, 0x49fe, {0xbb, 0xae, 0x0f, 0x02, 0x22, 0x28, 0x07, 0x1a}},
    {0x4fd2ed52, 0x7731, 0x4b8d, {0x94, 0x69, 0x03, 0xd2, 0xcc, 0x30, 0x86, 0xc5}},
    {0x7b63b2e3, 0x107d, 0x4d48, {0xb2, 0xf6, 0xf6, 0x1e, 0x22, 0x94, 0x70, 0xd2}},
    {0x8dfba405, 0x8c9f, 0x45f8, {0xbf, 0xfa, 0x83, 0xb1, 0x4c, 0xef, 0x78, 0xb5}},
    {0xfc13df4b, 0x4448, 0x4f4f, {0x95, 0x0c, 0xba, 0x8d, 0x19, 0xd0, 0x0c, 0x36}},
    {0xf76a2dba, 0x1d52, 0x4539, {0x86, 0x6c, 0x2a, 0xa5, 0x18, 0xf9, 0xef, 0xc3}},
    {0x5bed9b15, 0xc079, 0x4d47, {0xbf, 0xe2, 0x21, 0x5a, 0x14, 0x0c, 0x07, 0xe0}},
    {0x27583ec3, 0xc8f5, 0x482f, {0x80, 0x52, 0x19, 0x4b, 0x8c, 0xe4, 0x70, 0x5a}},
    {0xcec5b60e, 0xc69c, 0x495f, {0x87, 0xf6, 0x84, 0xd2, 0x8e, 0xe1, 0x6f, 0xfb}},
    {0x42350846, 0xaaed, 0x47f7, {0xb1, 0x28, 0xfd, 0x0c, 0x98, 0x88, 0x1c, 0xde}}};
// ICorProfilerInfo12, since .NET 5.
inline constexpr Guid kInfoInterface = {0x27b24ccd, 0x1cb1, 0x47c5, {0x96, 0xee, 0x98, 0x19, 0x0d, 0xc3, 0x09, 0x59}};
// IMetaDataImport
inline constexpr Guid kMetadataInterface = {
    0x7dac8207, 0xd3ae, 0x4c75, {0x9b, 0x67, 0x92, 0x80, 0x1a, 0x49, 0x7d, 0x44}};

// IUnknown, at the front of every table.
enum UnknownSlot : unsigned { kQueryInterface, kAddRef, kRelease };

// IClassFactory
enum FactorySlot : unsigned { kCreateInstance = 3, kLockServer, kFactorySlots };

// ICorProfilerCallback to ICorProfilerCallback11.
enum CallbackSlot : unsigned {
  kInitialize = 3,
  kShutdown,
  kAppDomainCreationStarted,
  kAppDomainCreationFinished,
  kAppDomainShutdownStarted,
  kAppDomainShutdownFinished,
  kAssemblyLoadStarted,
  kAssemblyLoadFinished,
  kAssemblyUnloadStarted,
  kAssemblyUnloadFinished,
  kModuleLoadStarted,
  kModuleLoadFinished,
  kModuleUnloadStarted,
  kModuleUnloadFinished,
  kModuleAttachedToAssembly,
  kClassLoadStarted,
  kClassLoadFinished,
  kClassUnloadStarted,
  kClassUnloadFinished,
  kFunctionUnloadStarted,
  kJITCompilationStarted,
  kJITCompilationFinished,
  kJITCachedFunctionSearchStarted,
  kJITCachedFunctionSearchFinished,
  kJITFunctionPitched,
  kJITInlining,
  kThreadCreated,
  kThreadDestroyed,
  kThreadAssignedToOSThread,
  kRemotingClientInvocationStarted,
  kRemotingClientSendingMessage,
  kRemotingClientReceivingReply,
  kRemotingClientInvocationFinished,
  kRemotingServerReceivingMessage,
  kRemotingServerInvocationStarted,
  kRemotingServerInvocationReturned,
  kRemotingServerSendingReply,
  kUnmanagedToManagedTransition,
  kManagedToUnmanagedTransition,
  kRuntimeSuspendStarted,
  kRuntimeSuspendFinished,
  kRuntimeSuspendAborted,
  kRuntimeResumeStarted,
  kRuntimeResumeFinished,
  kRuntimeThreadSuspended,
  kRuntimeThreadResumed,
  kMovedReferences,
  kObjectAllocated,
  kObjectsAllocatedByClass,
  kObjectReferences,
  kRootReferences,
  kExceptionThrown,
  kExceptionSearchFunctionEnter,
  kExceptionSearchFunctionLeave,
  kExceptionSearchFilterEnter,
  kExceptionSearchFilterLeave,
  kExceptionSearchCatcherFound,
  kExceptionOSHandlerEnter,
  kExceptionOSHandlerLeave,
  kExceptionUnwindFunctionEnter,
  kExceptionUnwindFunctionLeave,
  kExceptionUnwindFinallyEnter,
  kExceptionUnwindFinallyLeave,
  kExceptionCatcherEnter,
  kExceptionCatcherLeave,
  kCOMClassicVTableCreated,
  kCOMClassicVTableDestroyed,
  kExceptionCLRCatcherFound,
  kExceptionCLRCatcherExecute,
  kThreadNameChanged,
  kGarbageCollectionStarted,
  kSurvivingReferences,
  kGarbageCollectionFinished,
  kFinalizeableObjectQueued,
  kRootReferences2,
  kHandleCreated,
  kHandleDestroyed,
  kInitializeForAttach,
  kProfilerAttachComplete,
  kProfilerDetachSucceeded,
  kReJITCompilationStarted,
  kGetReJITParameters,
  kReJITCompilationFinished,
  kReJITError,
  kMovedReferences2,
  kSurvivingReferences2,
  kConditionalWeakTableElementReferences,
  kGetAssemblyReferences,
  kModuleInMemorySymbolsUpdated,
  kDynamicMethodJITCompilationStarted,
  kDynamicMethodJITCompilationFinished,
  kDynamicMethodUnloaded,
  kEventPipeEventDelivered,
  kEventPipeProviderCreated,
  kLoadAsNotificationOnly,
  kCallbackSlots
};
static_assert(kCallbackSlots == 98);

// Those of ICorProfilerInfo to ICorProfilerInfo12 that are called.
enum InfoSlot : unsigned {
  kGetClassFromObject = 3,
  kIsArrayClass = 11,
  kGetModuleMetaData = 21,
  kGetAssemblyInfo = 26,
  kGetFunctionInfo2 = 38,
  kGetClassIDInfo2 = 41,
  kGetObjectGeneration = 55,
  kRequestProfilerDetach = 58,
  kGetModuleInfo2 = 70,
  kEnumJITedFunctions2 = 79,
  kGetObjectSize2 = 80,
  kSetEventMask2 = 82,
  kGetDynamicFunctionInfo = 89,
  kGetNativeCodeStartAddresses = 90,
  kGetILToNativeMapping3 = 91,
};

// ICorProfilerFunctionEnum
enum FunctionEnumSlot : unsigned { kSkip = 3, kReset, kClone, kGetCount, kNext };

// Those of IMetaDataImport.
enum MetadataSlot : unsigned { kGetTypeDefProps = 12, kGetMethodProps = 30, kGetNestedClassProps = 62 };

// COR_PRF_MONITOR and COR_PRF_HIGH_MONITOR: what a runtime takes after an attach from a profiler that only listens,
// which is COR_PRF_ALLOWABLE_AFTER_ATTACH and COR_PRF_ALLOWABLE_NOTIFICATION_PROFILER.
inline constexpr uint32_t kAllowedAfterAttachLow = 0x1001027e;
inline constexpr uint32_t kAllowedHigh = 0xf6;

// COR_PRF_ENABLE_OBJECT_ALLOCATED: of those that the library is asked for the one that can't be taken back, and with
// which the runtime unloads no profiler.
inline constexpr uint32_t kImmutableLow = 0x800000;

// COR_PRF_MONITOR_OBJECT_ALLOCATED: each object, and not those of the large object heap only.
inline constexpr uint32_t kEveryObjectLow = 0x100;

// COR_PRF_GC_GENERATION_RANGE. The heaps of large and of pinned objects are generations above the oldest one.
struct GenerationRange {
  uint32_t generation;
  RuntimeId start;
  uintptr_t bytes, reserved_bytes;
};
inline constexpr uint32_t kLargeObjectHeap = 3;

// For a library that is loaded at the start of a program: COR_PRF_MONITOR_FUNCTION_UNLOADS and
// COR_PRF_MONITOR_OBJECT_ALLOCATED as well. None of them changes how code is compiled.
inline constexpr uint32_t kAllowedAtStartLow = kAllowedAfterAttachLow | kImmutableLow | kEveryObjectLow | 0x1;

// Calls a function of an interface. Arguments must have the types of the declaration, to the last bit.
template <typename... Arguments>
Hresult CallSlot(void* object, unsigned slot, Arguments... arguments) {
  using Function = Hresult (*)(void*, Arguments...);
  void* const* table = *static_cast<void* const* const*>(object);
  return reinterpret_cast<Function>(table[slot])(object, arguments...);
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_INPROCESS_PROFILER_API_H_
