#include "capture/drop_counters.h"

namespace clrsampler {

absl::string_view DropName(wire_drop drop) {
  switch (drop) {
    case WIRE_DROP_RING_FULL:
      return "ring_full";
    case WIRE_DROP_NO_SCRATCH:
      return "no_scratch";
    case WIRE_DROP_COUNT:
      break;
  }
  return "unknown";
}

absl::string_view StopName(uint16_t stop) {
  switch (stop) {
    case WIRE_STOP_NONE:
      return "none";
    case WIRE_STOP_END:
      return "end";
    case WIRE_STOP_BAD_FP:
      return "bad_frame_pointer";
    case WIRE_STOP_FAULT:
      return "fault";
    case WIRE_STOP_MAX_FRAMES:
      return "max_frames";
    case WIRE_STOP_MAX_WORDS:
      return "max_words";
    case WIRE_STOP_NO_REGISTERS:
      return "no_registers";
    case WIRE_STOP_32BIT:
      return "32_bit";
    default:
      return "unknown";
  }
}

wire_counters SumCounters(std::span<const wire_counters> per_cpu) {
  wire_counters sum{};
  for (const wire_counters& one : per_cpu) {
    sum.hits += one.hits;
    sum.idle += one.idle;
    sum.filtered += one.filtered;
    sum.sent += one.sent;
    sum.hook_hits += one.hook_hits;
    sum.hook_filtered += one.hook_filtered;
    sum.hook_sent += one.hook_sent;
    sum.hook_lost += one.hook_lost;
    sum.hook_rate_limited += one.hook_rate_limited;
    sum.hook_summed += one.hook_summed;
    sum.waits += one.waits;
    sum.wait_short += one.wait_short;
    sum.wait_passed_over += one.wait_passed_over;
    sum.wait_kept += one.wait_kept;
    sum.wait_records_sent += one.wait_records_sent;
    sum.wait_records_lost += one.wait_records_lost;
    sum.wait_without_stack += one.wait_without_stack;
    sum.threads_sent += one.threads_sent;
    sum.threads_lost += one.threads_lost;
    sum.trace.read += one.trace.read;
    sum.trace.none += one.trace.none;
    sum.trace.unreadable += one.trace.unreadable;
    sum.wait_outside += one.wait_outside;
    sum.wait_seen_anew += one.wait_seen_anew;
    for (int reason = 0; reason < WIRE_DROP_COUNT; ++reason) sum.drops[reason] += one.drops[reason];
  }
  return sum;
}

}  // namespace clrsampler
