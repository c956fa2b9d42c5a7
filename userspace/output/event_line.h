// An event of a runtime as a line, for people and for programs.
#ifndef CLRSAMPLER_OUTPUT_EVENT_LINE_H_
#define CLRSAMPLER_OUTPUT_EVENT_LINE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "formats/inprocess/ring_reader.h"
#include "formats/nettrace/clr_event_stream.h"

namespace clrsampler {

// "     1.935  ExceptionThrown              on 4719  type=Shop.OutOfStock message="order 17" hresult=0x80131500", with
// the seconds since `first_ns`. No control characters, and no stack. `source`: where all events are from one, it need
// not be said.
std::string EventLine(const ClrEventRecord& record, uint64_t first_ns, absl::string_view source = "");

// An object: time_ns, pid, thread, event, source, and the fields of the kind (docs/events.md).
std::string EventJson(const ClrEventRecord& record, uint32_t pid, absl::string_view source);

// The same of a record of the profiler library; its source is "library".
std::string EventLine(const LibraryRecord& record, uint64_t first_ns);
std::string EventJson(const LibraryRecord& record, uint32_t pid);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_EVENT_LINE_H_
