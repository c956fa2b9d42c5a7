// Explains records of the profiler library: their names, which fields their values are, and what of the runtime must be
// listened to for them. The names are those of docs/events.md where events of other sources have the same meaning.
#ifndef CLRSAMPLER_FORMATS_INPROCESS_LIBRARY_EVENTS_H_
#define CLRSAMPLER_FORMATS_INPROCESS_LIBRARY_EVENTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "clrsampler/inprocess_ring.h"
#include "formats/inprocess/ring_reader.h"

namespace clrsampler {

enum class LibraryFieldForm : uint8_t {
  kNone,
  kNumber,         // 0 is left out
  kCount,          // 0 is said
  kAddress,        // "0x7f0d2b4d1380"; 0 is left out
  kError,          // an HRESULT, left out where it is a success
  kSuspendReason,  // SUSPEND_REASON, as the runtime's own events have it
  kInduced,        // COR_PRF_GC_REASON
  kText,           // left out where it is empty
  kTrue,
};

struct LibraryField {
  const char* name = nullptr;
  LibraryFieldForm form = LibraryFieldForm::kNone;
  uint64_t number = 0;
  absl::string_view text;  // of the record
};

// "ExceptionThrown"; of each kind but kPadding and kCount.
absl::string_view LibraryEventName(InprocessKind kind);
// The fields that the record has, in the order in which they are printed.
std::vector<LibraryField> LibraryFields(const LibraryRecord& record);

// The names of all kinds, each once, and the kinds of a name.
std::vector<absl::string_view> LibraryEventNames();
uint64_t LibraryKindsOf(absl::string_view name);

// Kinds that are sent where none was asked for: all but those that come for each frame of an exception, for each type
// and for each stopped thread, and maps.
uint64_t UsualLibraryKinds();

// The events that the runtime must be asked for: COR_PRF_MONITOR and COR_PRF_HIGH_MONITOR.
struct LibraryDemand {
  uint32_t low = 0;
  uint32_t high = 0;
};
// `at_start`: of a program that is started with the library, which may be asked for more.
LibraryDemand DemandOfLibrary(uint64_t kinds, bool at_start);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_INPROCESS_LIBRARY_EVENTS_H_
