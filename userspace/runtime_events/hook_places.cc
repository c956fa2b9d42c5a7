#include "runtime_events/hook_places.h"

#include <algorithm>
#include <cstdint>

#include "clr/hooks/allocation_search.h"
#include "clr/hooks/exception_search.h"
#include "clrsampler/wire.h"
#include "status/status.h"

namespace clrsampler {
namespace {

uint64_t Packed(const ProbeValue& value) {
  constexpr uint64_t kNumberMask = (uint64_t{1} << WIRE_PLACE_NUMBER_BITS) - 1;
  const auto packed = [&](wire_place kind) {
    return uint64_t{kind} << WIRE_PLACE_NUMBER_BITS | (static_cast<uint64_t>(int64_t{value.number}) & kNumberMask);
  };
  switch (value.kind) {
    case ProbeValue::Kind::kRegister:
      return packed(WIRE_PLACE_REGISTER);
    case ProbeValue::Kind::kFrame:
      return packed(WIRE_PLACE_FRAME);
    case ProbeValue::Kind::kConstant:
      return packed(WIRE_PLACE_CONSTANT);
    case ProbeValue::Kind::kUnknown:
      break;
  }
  return WIRE_PLACE_NONE;
}

struct HookOfKind {
  HookKind kind;
  wire_hook hook;
};
// A return probe is on two functions through which no C++ exception passes. It is placed only where the image's code
// proves that these are the functions. Where a symbol alone names them, a wrong one would end the process. The last
// hook of a pause comes first: if its beginning is seen, its end is seen, too.
constexpr HookOfKind kSuspensionHooks[] = {
    {HookKind::kRestartEE, WIRE_HOOK_RESTARTED}, {HookKind::kRestartEE, WIRE_HOOK_RESTART},
    {HookKind::kDiagGcEnd, WIRE_HOOK_GC_END},    {HookKind::kDiagGcStart, WIRE_HOOK_GC_START},
    {HookKind::kSuspendEE, WIRE_HOOK_SUSPENDED}, {HookKind::kSuspendEE, WIRE_HOOK_SUSPEND},
};

bool IsAtReturn(wire_hook hook) { return hook == WIRE_HOOK_SUSPENDED || hook == WIRE_HOOK_RESTARTED; }

bool IsOfCollections(HookKind kind) { return kind == HookKind::kDiagGcStart || kind == HookKind::kDiagGcEnd; }

HookPlace PlaceOf(const AllocationPoint& point) {
  const AllocationFacts& facts = point.facts;
  if (point.inlined) {
    const uint64_t cookie =
        Packed(facts.bytes) | Packed(facts.heap) << WIRE_PLACE_BITS | Packed(facts.object) << 2 * WIRE_PLACE_BITS;
    return {WIRE_HOOK_ALLOCATED, HookForm::kInside, point.offset.value, cookie};
  }
  return {WIRE_HOOK_ALLOCATED, facts.of_one_heap ? HookForm::kMember : HookForm::kPlain, point.offset.value};
}

}  // namespace

absl::StatusOr<SuspensionHooks> SuspensionHookPlaces(const RuntimeHooks& hooks, bool resumed) {
  SuspensionHooks found;
  // Without the collections pauses still have their lengths. With half of them they would get wrong names.
  found.collections = hooks[HookKind::kDiagGcStart].status();
  found.collections.Update(hooks[HookKind::kDiagGcEnd].status());
  for (const HookOfKind& of_kind : kSuspensionHooks) {
    if (IsOfCollections(of_kind.kind) && !found.collections.ok()) continue;
    if (of_kind.hook == WIRE_HOOK_RESTARTED && !resumed) continue;
    const HookPoints& points = hooks[of_kind.kind];
    RETURN_IF_ERROR(points.status());
    if (IsAtReturn(of_kind.hook)) {
      const bool proven = std::ranges::all_of(*points, [](const HookPoint& point) { return point.proven_by_code; });
      if (of_kind.hook == WIRE_HOOK_SUSPENDED) found.sees_returns = proven;
      if (!proven) continue;
    }
    for (const HookPoint& point : *points) {
      found.places.push_back(
          {of_kind.hook, point.argument_shift != 0 ? HookForm::kMember : HookForm::kPlain, point.offset.value});
    }
  }
  return found;
}

absl::StatusOr<std::vector<HookPlace>> CompilationPlaces(const RuntimeHooks& hooks, bool of_runtime) {
  const HookPoints& begin = hooks[HookKind::kCompileMethod];
  RETURN_IF_ERROR(begin.status());
  RETURN_IF_ERROR(hooks.jit_return.status());
  const HookImage here = of_runtime ? HookImage::kRuntime : HookImage::kJit;
  if (begin->size() != 1 || begin->front().image != here || hooks.jit_return->image != here) {
    return absl::FailedPreconditionError("compileMethod is in another image than expected");
  }
  const HookForm form =
      hooks.jit_return->form == CompileForm::kEntryOnFrame ? HookForm::kEntryOnFrame : HookForm::kPlain;
  // The end comes first: if a beginning is seen, its end is seen, too.
  return std::vector<HookPlace>{{WIRE_HOOK_COMPILED, form, hooks.jit_return->offset.value},
                                {WIRE_HOOK_COMPILE, HookForm::kPlain, begin->front().offset.value}};
}

absl::StatusOr<std::vector<HookPlace>> AllocationReportPlaces(const ElfImage& collector) {
  ASSIGN_OR_RETURN(const std::vector<AllocationPoint> points, LocateAllocations(collector));
  std::vector<HookPlace> places;
  for (const AllocationPoint& point : points) places.push_back(PlaceOf(point));
  return places;
}

absl::StatusOr<std::vector<HookPlace>> NotedSuspensionPlaces(const RuntimeHooks& hooks) {
  const HookPoints& points = hooks[HookKind::kSuspendEE];
  RETURN_IF_ERROR(points.status());
  std::vector<HookPlace> places;
  places.reserve(points->size());
  for (const HookPoint& point : *points) places.push_back({WIRE_HOOK_SUSPEND, HookForm::kNoted, point.offset.value});
  return places;
}

absl::StatusOr<std::vector<HookPlace>> ExceptionPlaces(const ElfImage& runtime) {
  ASSIGN_OR_RETURN(const ExceptionPoint point, LocateExceptions(runtime));
  const HookForm form = point.form == ExceptionForm::kEvent ? HookForm::kCrawlFrame : HookForm::kPlain;
  return std::vector<HookPlace>{{WIRE_HOOK_THROWN, form, point.offset.value}};
}

}  // namespace clrsampler
