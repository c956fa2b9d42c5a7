#include "runtime_events/counted_event.h"

#include <algorithm>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace clrsampler {

std::vector<ClrEventKind> EventKindsOf(ProfileView view) {
  switch (view) {
    case ProfileView::kAllocations:
      return {ClrEventKind::kObjectAllocated};
    case ProfileView::kExceptions:
      return {ClrEventKind::kExceptionThrown};
    case ProfileView::kContention:
      return {ClrEventKind::kThreadBlockedMonitor, ClrEventKind::kThreadAcquiredMonitor};
    case ProfileView::kCpu:
    case ProfileView::kJit:
    case ProfileView::kPause:
    case ProfileView::kSuspendDelay:
    case ProfileView::kOffCpu:
    case ProfileView::kWall:
      break;
  }
  return {};
}

WeightUnit EventUnitOf(ProfileView view) {
  return view == ProfileView::kAllocations  ? WeightUnit::kBytes
         : view == ProfileView::kContention ? WeightUnit::kNanoseconds
                                            : WeightUnit::kSamples;
}

std::optional<CountedEvent> CountEvent(ProfileView view, const ClrEvent& event) {
  if (view == ProfileView::kAllocations && event.kind == ClrEventKind::kObjectAllocated) {
    const auto* tick = std::get_if<ClrAllocationTick>(&event.what);
    return tick == nullptr ? std::nullopt : std::optional(CountedEvent{std::max<uint64_t>(tick->bytes, 1), tick->type});
  }
  if (view == ProfileView::kExceptions && event.kind == ClrEventKind::kExceptionThrown) {
    const auto* exception = std::get_if<ClrException>(&event.what);
    return exception == nullptr ? std::nullopt : std::optional(CountedEvent{1, exception->type});
  }
  if (view != ProfileView::kContention || event.kind != ClrEventKind::kThreadAcquiredMonitor) return std::nullopt;
  const auto* wait = std::get_if<ClrContention>(&event.what);
  if (wait == nullptr || !wait->duration_ns.has_value()) return std::nullopt;
  return CountedEvent{std::max<uint64_t>(*wait->duration_ns, 1), ""};
}

bool IsEventMachinery(ProfileView view, const Frame& frame) {
  if (frame.module != "System.Private.CoreLib") return false;
  const auto is_of = [&](absl::string_view type) {
    absl::string_view symbol = frame.symbol;
    return absl::ConsumePrefix(&symbol, type) && absl::StartsWith(symbol, "::");
  };
  switch (view) {
    case ProfileView::kExceptions:
      return is_of("System.Runtime.EH");  // since .NET 9 managed code looks for handlers
    case ProfileView::kContention:        // since .NET 10 it has the locks
      return is_of("System.Threading.Lock") || is_of("System.Threading.Monitor") ||
             is_of("System.Diagnostics.Tracing.NativeRuntimeEventSource");
    default:
      return false;
  }
}

}  // namespace clrsampler
