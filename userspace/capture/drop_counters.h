// The counts of the wire format: the words that the account has for them, and the sum over CPUs.
#ifndef CLRSAMPLER_CAPTURE_DROP_COUNTERS_H_
#define CLRSAMPLER_CAPTURE_DROP_COUNTERS_H_

#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "clrsampler/wire.h"

namespace clrsampler {

// "ring_full"; a fixed word. A number that the enum does not know reads "unknown".
absl::string_view DropName(wire_drop drop);

// "end", "bad_frame_pointer"
absl::string_view StopName(uint16_t stop);

// The sum over CPUs.
wire_counters SumCounters(std::span<const wire_counters> per_cpu);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_DROP_COUNTERS_H_
