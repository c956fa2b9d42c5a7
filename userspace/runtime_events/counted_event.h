// The value of one event of a runtime's stream in a profile: its weight, and the type that stands on its stack. Pure.
//
//   view          event                   weight                                type
//   kAllocations  ObjectAllocated         bytes since the collector's last one  of the object at hand
//   kExceptions   ExceptionThrown         1                                     of the exception
//   kContention   ThreadAcquiredMonitor   nanoseconds of the wait               none
//
// The stack of a wait comes with ThreadBlockedMonitor (lock_waits.h).
#ifndef CLRSAMPLER_RUNTIME_EVENTS_COUNTED_EVENT_H_
#define CLRSAMPLER_RUNTIME_EVENTS_COUNTED_EVENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/nettrace/clr_events.h"
#include "formats/profile/profile_model.h"
#include "symbols/frame.h"

namespace clrsampler {

struct CountedEvent {
  uint64_t weight = 1;     // at least 1, as samples have it
  absl::string_view type;  // the event's own text, valid as long as it; empty: it has none
};

// Empty: profiles of this view are not made of events.
std::vector<ClrEventKind> EventKindsOf(ProfileView view);
WeightUnit EventUnitOf(ProfileView view);

// nullopt: an event that the view does not count, or a wait without its time.
std::optional<CountedEvent> CountEvent(ProfileView view, const ClrEvent& event);

// Whether a managed method is how the runtime throws, waits or sends events: it stands below the method that did what
// the event tells of, and says nothing of it.
bool IsEventMachinery(ProfileView view, const Frame& frame);

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_COUNTED_EVENT_H_
