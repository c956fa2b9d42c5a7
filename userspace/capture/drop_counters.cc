#include "capture/drop_counters.h"

#include <iterator>
#include <numeric>

namespace clrsampler {
namespace {

struct Words {
  absl::string_view name;
  absl::string_view sentence;
};

Words WordsOf(wire_drop drop) {
  switch (drop) {
    case WIRE_DROP_RING_FULL:
      return {"ring_full", "the ring buffer was full: the agent read too slowly"};
    case WIRE_DROP_NO_SCRATCH:
      return {"no_scratch", "the CPU's number is larger than the kernel said was possible"};
    case WIRE_DROP_COUNT:
      break;
  }
  return {"unknown", "unknown reason"};
}

Words WordsOf(wire_stop stop) {
  switch (stop) {
    case WIRE_STOP_NONE:
      return {"none", "a kernel thread has no user stack"};
    case WIRE_STOP_END:
      return {"end", "the outermost frame was reached"};
    case WIRE_STOP_BAD_FP:
      return {"bad_frame_pointer",
              "the frame pointer did not point up the stack: code that uses the register for data"};
    case WIRE_STOP_FAULT:
      return {"fault", "stack memory could not be read"};
    case WIRE_STOP_MAX_FRAMES:
      return {"max_frames", "the stack has more frames than the limit"};
    case WIRE_STOP_MAX_WORDS:
      return {"max_words", "the stack has more words than the limit"};
    case WIRE_STOP_NO_REGISTERS:
      return {"no_registers", "the thread had no user registers: it was exiting, or works for io_uring"};
    case WIRE_STOP_32BIT:
      return {"32_bit", "a 32-bit program: its stacks are not walked"};
    case WIRE_STOP_COUNT:
      break;
  }
  return {"unknown", "unknown reason"};
}

}  // namespace

absl::string_view DropName(wire_drop drop) { return WordsOf(drop).name; }
absl::string_view DropSentence(wire_drop drop) { return WordsOf(drop).sentence; }
absl::string_view StopName(wire_stop stop) { return WordsOf(stop).name; }
absl::string_view StopSentence(wire_stop stop) { return WordsOf(stop).sentence; }

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
    sum.hook_limited += one.hook_limited;
    for (int reason = 0; reason < WIRE_DROP_COUNT; ++reason) sum.drops[reason] += one.drops[reason];
  }
  return sum;
}

uint64_t TotalDrops(const wire_counters& counters) {
  return std::accumulate(std::begin(counters.drops), std::end(counters.drops), uint64_t{0});
}

}  // namespace clrsampler
