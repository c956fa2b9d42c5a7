// Events of the provider Microsoft-Windows-DotNETRuntime: payload -> what happened.
//
// Kinds have the names that the profiler interface of the first runtime gave such notifications, where it has one.
// Layouts: dotnet/runtime:src/coreclr/vm/ClrEtwAll.man; seen in streams of 8.0.34, 9.0.23, 10.0.15 and 11.0.0. Newer
// versions of an event have new fields behind the ones read here.
//
// Texts come from the target: UTF-8, of at most kMaxClrTextUnits UTF-16 units, with whatever characters they have.
#ifndef CLRSAMPLER_FORMATS_NETTRACE_CLR_EVENTS_H_
#define CLRSAMPLER_FORMATS_NETTRACE_CLR_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

inline constexpr absl::string_view kClrProvider = "Microsoft-Windows-DotNETRuntime";
inline constexpr size_t kMaxClrTextUnits = 2048;

enum class ClrEventKind : uint8_t {
  kThreadCreated,
  kThreadDestroyed,  // no runtime sends this or the next
  kThreadNameChanged,
  kAssemblyLoadFinished,
  kAssemblyUnloadFinished,
  kModuleLoadFinished,
  kModuleUnloadFinished,
  kJitCompilationStarted,
  kJitCompilationFinished,
  kFunctionUnloadStarted,
  kExceptionThrown,
  kExceptionSearchFilterEnter,
  kExceptionSearchFilterLeave,
  kExceptionUnwindFinallyEnter,
  kExceptionUnwindFinallyLeave,
  kExceptionCatcherEnter,
  kExceptionCatcherLeave,
  kThreadBlockedMonitor,
  kThreadAcquiredMonitor,
  kRuntimeSuspendStarted,
  kRuntimeSuspendFinished,
  kRuntimeResumeStarted,
  kRuntimeResumeFinished,
  kGarbageCollectionStarted,
  kGarbageCollectionFinished,
  kObjectAllocated,
};

// A thread that was created, ended or got a name. No runtime of 8 to 11 sends the event that would say its end.
struct ClrThread {
  uint64_t runtime_thread = 0;  // the runtime's own object
  uint32_t managed_id = 0;
  uint32_t tid = 0;  // as the kernel numbers it in the process's pid namespace
  std::string name;  // 15 bytes at most; empty: not known
  // The innermost own method of the thread that made it, and all its frames, outermost first; empty: not known.
  std::string method = {};
  std::vector<std::string> stack = {};
};

struct ClrAssembly {
  uint64_t assembly = 0;
  std::string name;  // "zoo, Version=1.0.0.0, Culture=neutral, PublicKeyToken=null"
};

struct ClrModule {
  uint64_t module = 0;
  uint64_t assembly = 0;
  std::string path;  // of the IL; a bare name where the module was loaded from memory
};

struct ClrMethod {
  uint64_t method = 0;
  uint64_t module = 0;
  std::string type;       // "Shop.Order`1"
  std::string name;       // "Total"
  std::string signature;  // "instance int32  (int32)"
  uint32_t token = 0;
  uint32_t il_bytes = 0;       // of a compilation that begins
  uint64_t address = 0;        // of code that there is
  uint32_t code_bytes = 0;     // of code that there is
  absl::string_view tier;      // of code that there is: "OptimizedTier1"; empty: the runtime does not say
  bool dynamic = false;        // made at run time, in no assembly
  uint64_t recompilation = 0;  // of a profiler's requests; 0: none
};

struct ClrException {
  std::string type;  // "System.InvalidOperationException"; of a nested type its own name only
  std::string message;
  uint64_t address = 0;  // of the code that threw it; 0 since .NET 9, where the event's stack tells it
  uint32_t hresult = 0;
  bool has_inner = false;
  bool nested = false;    // thrown while another one was handled
  bool rethrown = false;  // by `throw;`
};

// A filter, finally or catch that begins.
struct ClrHandler {
  uint64_t address = 0;
  uint64_t method = 0;
  std::string method_name;  // "void [Shop] Shop.Order::Total(int32)"
};

struct ClrContention {
  uint64_t lock = 0;                    // 0: the runtime does not say
  uint64_t object = 0;                  // whose lock it is; moves with collections
  uint64_t owner = 0;                   // the thread that holds it: its tid, on .NET 11 its managed id
  std::optional<uint64_t> duration_ns;  // of one that is over
};

// A suspension that begins.
struct ClrSuspension {
  uint32_t reason = 0;  // the runtime's own number: 1 for a collection
};

struct ClrCollection {
  uint32_t number = 0;  // from 1; 0: not known
  uint32_t generation = 0;
  // One that begins:
  uint32_t reason = 0;     // the runtime's own number: 1 induced
  absl::string_view type;  // "blocking", "background", "foreground" (blocking, within a background one)
};

// The collector has handed out some 100 KB more; the object is the one that it was asked for at that moment.
struct ClrAllocationTick {
  uint64_t bytes = 0;         // handed out since the last tick, to whatever objects
  absl::string_view heap;     // "small", "large", "pinned"
  uint64_t type_id = 0;       // address of its MethodTable
  std::string type;           // as of an exception
  uint32_t heap_index = 0;    // of the server collector's heaps
  uint64_t object = 0;        // its address then; 0 before version 3 of the event
  uint64_t object_bytes = 0;  // 0 before version 4 of the event
};

struct ClrEvent {
  ClrEventKind kind{};
  // monostate: there is nothing to say but the kind.
  std::variant<std::monostate, ClrThread, ClrAssembly, ClrModule, ClrMethod, ClrException, ClrHandler, ClrContention,
               ClrSuspension, ClrCollection, ClrAllocationTick>
      what;
};

// nullopt: an event that is none of these kinds, or code that was not compiled but read from a ready-to-run image.
// DataLoss: the payload is shorter than its fields.
absl::StatusOr<std::optional<ClrEvent>> ParseClrEvent(uint32_t event_id, uint32_t version, uint32_t pointer_bytes,
                                                      std::span<const std::byte> payload);

// "ExceptionThrown"
absl::string_view ClrEventName(ClrEventKind kind);
// All kinds, in the order of the enumeration.
std::span<const ClrEventKind> AllClrEventKinds();
std::optional<ClrEventKind> ClrEventKindOf(absl::string_view name);

// The keywords and the level for which the runtime sends events of a kind to a session: bits of keywords, which add up,
// and the level, of which the highest counts. No keywords: no runtime sends them.
struct ClrEventDemand {
  uint64_t keywords = 0;
  uint32_t level = 0;
};
ClrEventDemand DemandOf(ClrEventKind kind);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NETTRACE_CLR_EVENTS_H_
