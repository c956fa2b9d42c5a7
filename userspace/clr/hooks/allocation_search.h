// Where the collector reports allocated memory, by structure. It adds up what threads take for their objects, and once
// that is above 100 KB it fires GCAllocationTick: whether anybody listens is asked only there. So a probe in front of
// that question sees every 100 KB, and each large object, always (gc_heap::adjust_limit_clr and
// fire_etw_allocation_event, src/coreclr/gc/gc.cpp).
//
//  - .NET 8 to 10: the report is a function of its own, one for each of the two collectors. It is called behind
//    a comparison with 100 KB, and is nothing but the report: level, keyword, slot 14 of the event sink.
//  - .NET 11: the report is inlined at 20 places. The probe goes to the branch that is taken where somebody listens. As
//    many places set the sum back to zero in these functions: so none is missing.
// Measured on x64 (8.0.30 to 11.0.0) and arm64 (9.0.23, 10.0.15, 11.0.0, and the single-file host of 8.0.34).
#ifndef CLRSAMPLER_CLR_HOOKS_ALLOCATION_SEARCH_H_
#define CLRSAMPLER_CLR_HOOKS_ALLOCATION_SEARCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clr/hooks/allocation_place.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

// One address to probe. It holds for exactly the bytes it was found in.
struct AllocationPoint {
  VirtualAddress address;  // before relocation
  FileOffset offset;       // what a uprobe takes
  bool inlined = false;    // a branch inside a function; else a function's first instruction
  AllocationFacts facts;
  std::string evidence;  // half a sentence, for doctor and reports
};

// At least one; errors are a sentence with a hint. `collector`: libcoreclr.so, a single-file host, or a collector in a
// library of its own. Reads all code once: 6 ms of CPU time for a libcoreclr.so, the start of the program that asks
// included (tools/hook_check).
absl::StatusOr<std::vector<AllocationPoint>> LocateAllocations(const ElfImage& collector);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_ALLOCATION_SEARCH_H_
