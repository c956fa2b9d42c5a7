// Names of kinds, and the settings that make a runtime send them.
#include <algorithm>
#include <array>

#include "formats/nettrace/clr_events.h"

namespace clrsampler {
namespace {

// Bits of the provider's keywords.
constexpr uint64_t kGc = 0x1;
constexpr uint64_t kLoader = 0x8;
constexpr uint64_t kJit = 0x10;
constexpr uint64_t kThreads = 0x800;  // and the memory of application domains, of which no event came from 8 to 11
constexpr uint64_t kContention = 0x4000;
constexpr uint64_t kException = 0x8000;

constexpr uint32_t kError = 2;
constexpr uint32_t kInformational = 4;
constexpr uint32_t kVerbose = 5;

struct Row {
  ClrEventKind kind;
  absl::string_view name;
  ClrEventDemand demand;
};

using enum ClrEventKind;
constexpr std::array kRows{
    Row{kThreadCreated, "ThreadCreated", {kThreads, kInformational}},
    Row{kThreadDestroyed, "ThreadDestroyed", {}},
    Row{kThreadNameChanged, "ThreadNameChanged", {}},
    Row{kAssemblyLoadFinished, "AssemblyLoadFinished", {kLoader, kInformational}},
    Row{kAssemblyUnloadFinished, "AssemblyUnloadFinished", {kLoader, kInformational}},
    Row{kModuleLoadFinished, "ModuleLoadFinished", {kLoader, kInformational}},
    Row{kModuleUnloadFinished, "ModuleUnloadFinished", {kLoader, kInformational}},
    Row{kJitCompilationStarted, "JITCompilationStarted", {kJit, kVerbose}},
    Row{kJitCompilationFinished, "JITCompilationFinished", {kJit, kVerbose}},
    Row{kFunctionUnloadStarted, "FunctionUnloadStarted", {kJit, kVerbose}},
    Row{kExceptionThrown, "ExceptionThrown", {kException, kError}},
    Row{kExceptionSearchFilterEnter, "ExceptionSearchFilterEnter", {kException, kInformational}},
    Row{kExceptionSearchFilterLeave, "ExceptionSearchFilterLeave", {kException, kInformational}},
    Row{kExceptionUnwindFinallyEnter, "ExceptionUnwindFinallyEnter", {kException, kInformational}},
    Row{kExceptionUnwindFinallyLeave, "ExceptionUnwindFinallyLeave", {kException, kInformational}},
    Row{kExceptionCatcherEnter, "ExceptionCatcherEnter", {kException, kInformational}},
    Row{kExceptionCatcherLeave, "ExceptionCatcherLeave", {kException, kInformational}},
    Row{kThreadBlockedMonitor, "ThreadBlockedMonitor", {kContention, kInformational}},
    Row{kThreadAcquiredMonitor, "ThreadAcquiredMonitor", {kContention, kInformational}},
    Row{kRuntimeSuspendStarted, "RuntimeSuspendStarted", {kGc, kInformational}},
    Row{kRuntimeSuspendFinished, "RuntimeSuspendFinished", {kGc, kInformational}},
    Row{kRuntimeResumeStarted, "RuntimeResumeStarted", {kGc, kInformational}},
    Row{kRuntimeResumeFinished, "RuntimeResumeFinished", {kGc, kInformational}},
    Row{kGarbageCollectionStarted, "GarbageCollectionStarted", {kGc, kInformational}},
    Row{kGarbageCollectionFinished, "GarbageCollectionFinished", {kGc, kInformational}},
    Row{kObjectAllocated, "ObjectAllocated", {kGc, kVerbose}},
};

constexpr bool InOrder() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].kind) != i) return false;
  }
  return static_cast<size_t>(kObjectAllocated) + 1 == kRows.size();
}
static_assert(InOrder());

constexpr std::array<ClrEventKind, kRows.size()> Kinds() {
  std::array<ClrEventKind, kRows.size()> kinds{};
  for (size_t i = 0; i < kRows.size(); ++i) kinds[i] = kRows[i].kind;
  return kinds;
}
constexpr std::array kAllKinds = Kinds();

const Row& RowOf(ClrEventKind kind) { return kRows[static_cast<size_t>(kind)]; }

}  // namespace

absl::string_view ClrEventName(ClrEventKind kind) { return RowOf(kind).name; }

std::span<const ClrEventKind> AllClrEventKinds() { return kAllKinds; }

std::optional<ClrEventKind> ClrEventKindOf(absl::string_view name) {
  const auto* row = std::find_if(kRows.begin(), kRows.end(), [&](const Row& known) { return known.name == name; });
  if (row == kRows.end()) return std::nullopt;
  return row->kind;
}

ClrEventDemand DemandOf(ClrEventKind kind) { return RowOf(kind).demand; }

}  // namespace clrsampler
