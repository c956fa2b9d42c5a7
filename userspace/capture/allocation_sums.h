// Tells what processes have allocated since their last record. A process that ends has no next record to tell it.
#ifndef CLRSAMPLER_CAPTURE_ALLOCATION_SUMS_H_
#define CLRSAMPLER_CAPTURE_ALLOCATION_SUMS_H_

#include <bpf/bpf.h>

#include <cstdint>
#include <optional>

#include "clrsampler/wire.h"
#include "clrsampler/wire_allocation_sum.h"

namespace clrsampler {

// A record that only tells the sum, as of the last hit. nullopt: it was told already.
inline std::optional<wire_allocation> RecordOfSum(uint32_t tgid, const wire_allocation_sum& sum) {
  if (sum.hit_ns <= sum.told_ns) return std::nullopt;
  wire_allocation record{};
  record.header = {sizeof record, WIRE_ALLOCATION, 0, sum.hit_ns};
  record.tgid = tgid;  // without a thread: it is nobody's next record
  record.process_start_ns = sum.process_start_ns;
  record.total_bytes = sum.bytes;
  record.total_hits = sum.hits;
  record.heap = WIRE_HEAP_UNKNOWN;
  return record;
}

// The same of the map's entry. nullopt as well: it has none.
inline std::optional<wire_allocation> ReadSum(int map_fd, uint32_t tgid) {
  wire_allocation_sum sum{};
  if (bpf_map_lookup_elem(map_fd, &tgid, &sum) != 0) return std::nullopt;
  return RecordOfSum(tgid, sum);
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_ALLOCATION_SUMS_H_
