#include "formats/inprocess/library_events.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace clrsampler {
namespace {

using Form = LibraryFieldForm;

// COR_PRF_MONITOR and, with kHigh, COR_PRF_HIGH_MONITOR: dotnet/runtime:src/coreclr/inc/corprof.idl.
constexpr uint32_t kFunctionUnloads = 0x1, kClasses = 0x2, kModules = 0x4, kAssemblies = 0x8, kCompilations = 0x20,
                   kExceptions = 0x40, kThreads = 0x200, kSuspensions = 0x10000;
// COR_PRF_MONITOR_OBJECT_ALLOCATED and COR_PRF_ENABLE_OBJECT_ALLOCATED.
constexpr uint32_t kEveryObject = 0x800100;
constexpr uint32_t kHighDynamicUnloads = 0x4, kHighBasicGc = 0x10, kHighMoved = 0x20, kHighLargeObjects = 0x40;

struct Field {
  const char* name = nullptr;
  Form form = Form::kNone;
};

struct Row {
  InprocessKind kind;
  const char* name;
  uint32_t low = 0, high = 0;
  bool usual = true;  // sent where no kind was asked for
  std::array<Field, 4> values{};
  std::array<const char*, 2> texts{};
  bool dynamic = false;
};

constexpr std::array<Field, 4> kOfThread{{{"runtime_thread", Form::kAddress}}};
constexpr std::array<Field, 4> kOfMethod{
    {{"method_id", Form::kAddress}, {"module", Form::kAddress}, {}, {"hresult", Form::kError}}};
constexpr std::array<Field, 4> kOfModule{
    {{"module", Form::kAddress}, {"hresult", Form::kError}, {"assembly", Form::kAddress}}};
constexpr std::array<Field, 4> kOfAssembly{{{"assembly", Form::kAddress}, {"hresult", Form::kError}}};
constexpr std::array<Field, 4> kOfType{{{"type_id", Form::kAddress}, {"hresult", Form::kError}}};
constexpr std::array<const char*, 2> kMethodTexts{"type", "method"};

using Kind = InprocessKind;
constexpr Row kRows[] = {
    {Kind::kThreadCreated, "ThreadCreated", kThreads, 0, true, kOfThread},
    {Kind::kThreadDestroyed, "ThreadDestroyed", kThreads, 0, true, kOfThread},
    {Kind::kThreadAssignedToOSThread,
     "ThreadAssignedToOSThread",
     kThreads,
     0,
     true,
     {{{"runtime_thread", Form::kAddress}, {"tid", Form::kNumber}}}},
    {Kind::kThreadNameChanged, "ThreadNameChanged", kThreads, 0, true, kOfThread, {"name"}},
    {Kind::kAssemblyLoadFinished, "AssemblyLoadFinished", kAssemblies, 0, true, kOfAssembly, {"name"}},
    {Kind::kAssemblyUnloadFinished, "AssemblyUnloadFinished", kAssemblies, 0, true, kOfAssembly},
    {Kind::kModuleLoadFinished, "ModuleLoadFinished", kModules, 0, true, kOfModule, {"path"}},
    {Kind::kModuleUnloadStarted, "ModuleUnloadStarted", kModules, 0, true, kOfModule, {"path"}},
    {Kind::kModuleUnloadFinished, "ModuleUnloadFinished", kModules, 0, true, kOfModule},
    {Kind::kModuleAttachedToAssembly,
     "ModuleAttachedToAssembly",
     kModules,
     0,
     true,
     {{{"module", Form::kAddress}, {"assembly", Form::kAddress}}}},
    {Kind::kClassLoadFinished, "ClassLoadFinished", kClasses, 0, false, kOfType, {"type"}},
    {Kind::kClassUnloadStarted, "ClassUnloadStarted", kClasses, 0, false, kOfType, {"type"}},
    {Kind::kJitCompilationStarted, "JITCompilationStarted", kCompilations, 0, true, kOfMethod, kMethodTexts},
    {Kind::kJitCompilationFinished, "JITCompilationFinished", kCompilations, 0, true, kOfMethod, kMethodTexts},
    {Kind::kDynamicMethodJitStarted, "JITCompilationStarted", kCompilations, 0, true, kOfMethod, kMethodTexts, true},
    {Kind::kDynamicMethodJitFinished, "JITCompilationFinished", kCompilations, 0, true, kOfMethod, kMethodTexts, true},
    {Kind::kDynamicMethodUnloaded, "FunctionUnloadStarted", 0, kHighDynamicUnloads, true, kOfMethod, {}, true},
    {Kind::kFunctionUnloadStarted, "FunctionUnloadStarted", kFunctionUnloads, 0, true, kOfMethod, kMethodTexts},
    {Kind::kExceptionThrown,
     "ExceptionThrown",
     kExceptions,
     0,
     true,
     {{{"object", Form::kAddress}, {"type_id", Form::kAddress}}},
     {"type"}},
    {Kind::kExceptionSearchFunctionEnter, "ExceptionSearchFunctionEnter", kExceptions, 0, false, kOfMethod,
     kMethodTexts},
    {Kind::kExceptionSearchFunctionLeave, "ExceptionSearchFunctionLeave", kExceptions, 0, false},
    {Kind::kExceptionSearchFilterEnter, "ExceptionSearchFilterEnter", kExceptions, 0, true, kOfMethod, kMethodTexts},
    {Kind::kExceptionSearchFilterLeave, "ExceptionSearchFilterLeave", kExceptions, 0, true},
    {Kind::kExceptionSearchCatcherFound, "ExceptionSearchCatcherFound", kExceptions, 0, true, kOfMethod, kMethodTexts},
    {Kind::kExceptionUnwindFunctionEnter, "ExceptionUnwindFunctionEnter", kExceptions, 0, false, kOfMethod,
     kMethodTexts},
    {Kind::kExceptionUnwindFunctionLeave, "ExceptionUnwindFunctionLeave", kExceptions, 0, false},
    {Kind::kExceptionUnwindFinallyEnter, "ExceptionUnwindFinallyEnter", kExceptions, 0, true, kOfMethod, kMethodTexts},
    {Kind::kExceptionUnwindFinallyLeave, "ExceptionUnwindFinallyLeave", kExceptions, 0, true},
    {Kind::kExceptionCatcherEnter, "ExceptionCatcherEnter", kExceptions, 0, true, kOfMethod, kMethodTexts},
    {Kind::kExceptionCatcherLeave, "ExceptionCatcherLeave", kExceptions, 0, true},
    {Kind::kRuntimeSuspendStarted,
     "RuntimeSuspendStarted",
     kSuspensions,
     0,
     true,
     {{{"reason", Form::kSuspendReason}}}},
    {Kind::kRuntimeSuspendFinished, "RuntimeSuspendFinished", kSuspensions},
    {Kind::kRuntimeSuspendAborted, "RuntimeSuspendAborted", kSuspensions},
    {Kind::kRuntimeResumeStarted, "RuntimeResumeStarted", kSuspensions},
    {Kind::kRuntimeResumeFinished, "RuntimeResumeFinished", kSuspensions},
    {Kind::kRuntimeThreadSuspended, "RuntimeThreadSuspended", kSuspensions, 0, false, kOfThread},
    {Kind::kRuntimeThreadResumed, "RuntimeThreadResumed", kSuspensions, 0, false, kOfThread},
    {Kind::kGarbageCollectionStarted,
     "GarbageCollectionStarted",
     0,
     kHighBasicGc,
     true,
     {{{"generation", Form::kCount}, {"induced", Form::kInduced}}}},
    {Kind::kGarbageCollectionFinished, "GarbageCollectionFinished", 0, kHighBasicGc},
    {Kind::kMovedReferences,
     "MovedReferences",
     0,
     kHighMoved,
     false,
     {{{"ranges", Form::kCount}, {"bytes", Form::kCount}}}},
    {Kind::kObjectAllocated,
     "ObjectAllocated",
     0,
     kHighLargeObjects,
     true,
     {{{"object", Form::kAddress}, {"type_id", Form::kAddress}, {"bytes", Form::kCount}}},
     {"type"}},
    {Kind::kILToNativeMap,
     "ILToNativeMap",
     kCompilations | kModules,  // the walk over all methods must end before a module goes
     0,
     false,
     {{{"method_id", Form::kAddress}, {"address", Form::kAddress}, {"entries", Form::kCount}}}},
};
static_assert(std::size(kRows) == static_cast<size_t>(Kind::kCount) - 1, "a row for each kind but padding");

const Row* RowOf(InprocessKind kind) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.kind == kind; });
  return row == std::end(kRows) ? nullptr : row;
}

// The number of SUSPEND_REASON (dotnet/runtime:src/coreclr/vm/threadsuspend.h), which events of other sources have.
uint64_t SuspendReasonOf(uint64_t reason) {
  constexpr uint64_t kReasons[] = {0, 1, 2, 3, 4, 0, 5, 6, 3, 8};
  return reason < std::size(kReasons) ? kReasons[reason] : 0;
}

}  // namespace

absl::string_view LibraryEventName(InprocessKind kind) {
  const Row* row = RowOf(kind);
  return row == nullptr ? "" : row->name;
}

std::vector<LibraryField> LibraryFields(const LibraryRecord& record) {
  const Row* row = RowOf(record.kind);
  std::vector<LibraryField> fields;
  if (row == nullptr) return fields;
  for (size_t i = 0; i < row->texts.size(); ++i) {
    if (row->texts[i] != nullptr) fields.push_back({row->texts[i], Form::kText, 0, record.texts[i]});
  }
  for (size_t i = 0; i < row->values.size(); ++i) {
    const Field& field = row->values[i];
    if (field.form == Form::kNone) continue;
    const uint64_t value = record.values[i];
    fields.push_back({field.name, field.form, field.form == Form::kSuspendReason ? SuspendReasonOf(value) : value});
  }
  if (row->dynamic) fields.push_back({"dynamic", Form::kTrue});
  return fields;
}

std::vector<absl::string_view> LibraryEventNames() {
  std::vector<absl::string_view> names;
  for (const Row& row : kRows) {
    if (std::find(names.begin(), names.end(), row.name) == names.end()) names.emplace_back(row.name);
  }
  return names;
}

uint64_t LibraryKindsOf(absl::string_view name) {
  uint64_t kinds = 0;
  for (const Row& row : kRows) {
    if (name == row.name) kinds |= InprocessKindBit(row.kind);
  }
  return kinds;
}

uint64_t UsualLibraryKinds() {
  uint64_t kinds = 0;
  for (const Row& row : kRows) {
    if (row.usual) kinds |= InprocessKindBit(row.kind);
  }
  return kinds;
}

LibraryDemand DemandOfLibrary(uint64_t kinds, bool at_start) {
  LibraryDemand demand;
  for (const Row& row : kRows) {
    if ((kinds & InprocessKindBit(row.kind)) == 0) continue;
    demand.low |= row.low;
    demand.high |= row.high;
  }
  // Each object, and not the large ones only.
  if (at_start && (kinds & InprocessKindBit(InprocessKind::kObjectAllocated)) != 0) demand.low |= kEveryObject;
  return demand;
}

}  // namespace clrsampler
