#include "formats/nettrace/clr_events.h"

#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/names/tier.h"
#include "formats/nettrace/payload_fields.h"

namespace clrsampler {
namespace {

// The words of a number, or none for one that is not known.
template <size_t kCount>
absl::string_view WordOf(const std::array<absl::string_view, kCount>& words, uint64_t number) {
  return number < kCount ? words[number] : absl::string_view();
}

// By PrepareCodeConfig::JitOptimizationTier. 0 is that of runtimes which do not say it.
constexpr std::array<absl::string_view, 8> kTiers{"",
                                                  tier::kMinOptJitted,
                                                  tier::kOptimized,
                                                  tier::kQuickJitted,
                                                  tier::kOptimizedTier1,
                                                  tier::kOptimizedTier1Osr,
                                                  tier::kInstrumented,
                                                  tier::kInstrumentedOptimized};
constexpr std::array<absl::string_view, 3> kCollectionTypes{"blocking", "background", "foreground"};
constexpr std::array<absl::string_view, 3> kHeaps{"small", "large", "pinned"};

// Flags of a method.
constexpr uint32_t kDynamic = 1;
constexpr uint32_t kJitted = 8;
constexpr uint32_t kTierShift = 7;

// Flags of an exception.
constexpr uint16_t kHasInner = 1;
constexpr uint16_t kNested = 2;
constexpr uint16_t kRethrown = 4;

// A payload, and the parts of it that do not depend on the kind of event.
struct Source {
  PayloadFields fields;
  uint32_t version;
  uint32_t pointer_bytes;

  uint64_t Pointer() { return fields.Pointer(pointer_bytes); }
  std::string Text() { return fields.Text(kMaxClrTextUnits); }
};

using Parsed = std::optional<ClrEvent>;

Parsed ThreadCreated(Source& from) {
  ClrThread thread;
  thread.runtime_thread = from.fields.Number<uint64_t>();
  from.fields.Bytes(8 + 4);  // application domain, flags
  thread.managed_id = from.fields.Number<uint32_t>();
  thread.tid = from.fields.Number<uint32_t>();
  return ClrEvent{ClrEventKind::kThreadCreated, std::move(thread)};
}

Parsed Assembly(Source& from, ClrEventKind kind) {
  ClrAssembly assembly;
  assembly.assembly = from.fields.Number<uint64_t>();
  from.fields.Bytes(8 + (from.version >= 1 ? 8 : 0) + 4);  // application domain, binding, flags
  assembly.name = from.Text();
  return ClrEvent{kind, std::move(assembly)};
}

Parsed Module(Source& from, ClrEventKind kind) {
  ClrModule module;
  module.module = from.fields.Number<uint64_t>();
  module.assembly = from.fields.Number<uint64_t>();
  from.fields.Bytes(4 + 4);  // flags, nothing
  module.path = from.Text();
  return ClrEvent{kind, std::move(module)};
}

void ReadNames(Source& from, ClrMethod& method) {
  method.type = from.Text();
  method.name = from.Text();
  method.signature = from.Text();
}

Parsed CompilationStarted(Source& from) {
  ClrMethod method;
  method.method = from.fields.Number<uint64_t>();
  method.module = from.fields.Number<uint64_t>();
  method.token = from.fields.Number<uint32_t>();
  method.il_bytes = from.fields.Number<uint32_t>();
  ReadNames(from, method);
  method.dynamic = method.token == 0;
  return ClrEvent{ClrEventKind::kJitCompilationStarted, std::move(method)};
}

Parsed Code(Source& from, ClrEventKind kind) {
  ClrMethod method;
  method.method = from.fields.Number<uint64_t>();
  method.module = from.fields.Number<uint64_t>();
  method.address = from.fields.Number<uint64_t>();
  method.code_bytes = from.fields.Number<uint32_t>();
  method.token = from.fields.Number<uint32_t>();
  const auto flags = from.fields.Number<uint32_t>();
  ReadNames(from, method);
  if (from.version >= 1) from.fields.Bytes(2);  // number of the runtime in the process
  if (from.version >= 2) method.recompilation = from.fields.Number<uint64_t>();
  method.dynamic = (flags & kDynamic) != 0;
  method.tier = WordOf(kTiers, flags >> kTierShift & 7);
  if (from.fields.ok() && (flags & kJitted) == 0 && !method.dynamic) return std::nullopt;
  return ClrEvent{kind, std::move(method)};
}

Parsed ExceptionThrown(Source& from) {
  ClrException exception;
  exception.type = from.Text();
  exception.message = from.Text();
  exception.address = from.Pointer();
  exception.hresult = from.fields.Number<uint32_t>();
  const auto flags = from.fields.Number<uint16_t>();
  exception.has_inner = (flags & kHasInner) != 0;
  exception.nested = (flags & kNested) != 0;
  exception.rethrown = (flags & kRethrown) != 0;
  return ClrEvent{ClrEventKind::kExceptionThrown, std::move(exception)};
}

Parsed Handler(Source& from, ClrEventKind kind) {
  ClrHandler handler;
  handler.address = from.fields.Number<uint64_t>();
  handler.method = from.fields.Number<uint64_t>();
  handler.method_name = from.Text();
  return ClrEvent{kind, std::move(handler)};
}

Parsed Blocked(Source& from) {
  ClrContention contention;
  from.fields.Bytes(1 + (from.version >= 1 ? 2 : 0));  // managed or native, number of the runtime
  if (from.version >= 2) {
    contention.lock = from.Pointer();
    contention.object = from.Pointer();
    contention.owner = from.fields.Number<uint64_t>();
  }
  return ClrEvent{ClrEventKind::kThreadBlockedMonitor, contention};
}

Parsed Acquired(Source& from) {
  ClrContention contention;
  from.fields.Bytes(1 + 2);
  if (from.version >= 1) {
    const auto ns = std::bit_cast<double>(from.fields.Number<uint64_t>());
    constexpr double kYearNs = 365.0 * 86'400 * 1e9;
    if (ns >= 0 && ns < kYearNs) contention.duration_ns = static_cast<uint64_t>(std::llround(ns));
  }
  return ClrEvent{ClrEventKind::kThreadAcquiredMonitor, contention};
}

Parsed SuspendStarted(Source& from) {
  return ClrEvent{ClrEventKind::kRuntimeSuspendStarted, ClrSuspension{from.fields.Number<uint32_t>()}};
}

Parsed CollectionStarted(Source& from) {
  ClrCollection collection;
  collection.number = from.fields.Number<uint32_t>();
  collection.generation = from.fields.Number<uint32_t>();
  collection.reason = from.fields.Number<uint32_t>();
  collection.type = WordOf(kCollectionTypes, from.fields.Number<uint32_t>());
  return ClrEvent{ClrEventKind::kGarbageCollectionStarted, collection};
}

Parsed CollectionFinished(Source& from) {
  ClrCollection collection;
  collection.number = from.fields.Number<uint32_t>();
  collection.generation = from.fields.Number<uint32_t>();
  return ClrEvent{ClrEventKind::kGarbageCollectionFinished, collection};
}

// Version 1 has neither type nor the amount in 64 bits.
Parsed AllocationTick(Source& from) {
  if (from.version < 2) return std::nullopt;
  ClrAllocationTick tick;
  from.fields.Bytes(4);  // the amount in 32 bits
  tick.heap = WordOf(kHeaps, from.fields.Number<uint32_t>());
  from.fields.Bytes(2);  // number of the runtime
  tick.bytes = from.fields.Number<uint64_t>();
  tick.type_id = from.Pointer();
  tick.type = from.Text();
  tick.heap_index = from.fields.Number<uint32_t>();
  if (from.version >= 3) tick.object = from.Pointer();
  if (from.version >= 4) tick.object_bytes = from.fields.Number<uint64_t>();
  return ClrEvent{ClrEventKind::kObjectAllocated, std::move(tick)};
}

Parsed CollectorEvent(uint32_t event_id, Source& from) {
  switch (event_id) {
    case 1:
      return CollectionStarted(from);
    case 2:
      return CollectionFinished(from);
    case 3:
      return ClrEvent{ClrEventKind::kRuntimeResumeFinished, {}};
    case 7:
      return ClrEvent{ClrEventKind::kRuntimeResumeStarted, {}};
    case 8:
      return ClrEvent{ClrEventKind::kRuntimeSuspendFinished, {}};
    case 9:
      return SuspendStarted(from);
    case 10:
      return AllocationTick(from);
    default:
      return std::nullopt;
  }
}

Parsed LoaderEvent(uint32_t event_id, Source& from) {
  switch (event_id) {
    case 143:
      return Code(from, ClrEventKind::kJitCompilationFinished);
    case 144:
      return Code(from, ClrEventKind::kFunctionUnloadStarted);
    case 145:
      return CompilationStarted(from);
    case 152:
      return Module(from, ClrEventKind::kModuleLoadFinished);
    case 153:
      return Module(from, ClrEventKind::kModuleUnloadFinished);
    case 154:
      return Assembly(from, ClrEventKind::kAssemblyLoadFinished);
    case 155:
      return Assembly(from, ClrEventKind::kAssemblyUnloadFinished);
    default:
      return std::nullopt;
  }
}

Parsed ThreadEvent(uint32_t event_id, Source& from) {
  switch (event_id) {
    case 80:
      return ExceptionThrown(from);
    case 81:
      return Blocked(from);
    case 85:
      return ThreadCreated(from);
    case 91:
      return Acquired(from);
    case 250:
      return Handler(from, ClrEventKind::kExceptionCatcherEnter);
    case 251:
      return ClrEvent{ClrEventKind::kExceptionCatcherLeave, {}};
    case 252:
      return Handler(from, ClrEventKind::kExceptionUnwindFinallyEnter);
    case 253:
      return ClrEvent{ClrEventKind::kExceptionUnwindFinallyLeave, {}};
    case 254:
      return Handler(from, ClrEventKind::kExceptionSearchFilterEnter);
    case 255:
      return ClrEvent{ClrEventKind::kExceptionSearchFilterLeave, {}};
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<std::optional<ClrEvent>> ParseClrEvent(uint32_t event_id, uint32_t version, uint32_t pointer_bytes,
                                                      std::span<const std::byte> payload) {
  Source from{PayloadFields(payload), version, pointer_bytes};
  Parsed event = CollectorEvent(event_id, from);
  if (!event.has_value() && from.fields.ok()) event = LoaderEvent(event_id, from);
  if (!event.has_value() && from.fields.ok()) event = ThreadEvent(event_id, from);
  if (!from.fields.ok())
    return absl::DataLossError(absl::StrCat("the event ", event_id, " is shorter than its fields"));
  return event;
}

}  // namespace clrsampler
