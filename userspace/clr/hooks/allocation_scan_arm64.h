// Reads in arm64 code where the collector reports allocated memory; the counterpart of allocation_scan_x64.h, which
// describes the report. The limit is part of one instruction here, cmp xN, #25, lsl #12, or was put into a register by
// the two before. A branch goes over the report where the sum is no higher.
//
// Any branch by the level that leads to slot 14 is a report. One that stands behind no comparison with the limit counts
// as a site that is not understood.
#ifndef CLRSAMPLER_CLR_HOOKS_ALLOCATION_SCAN_ARM64_H_
#define CLRSAMPLER_CLR_HOOKS_ALLOCATION_SCAN_ARM64_H_

#include <cstddef>
#include <optional>
#include <span>

#include "clr/hooks/allocation_place.h"
#include "formats/elf/address_conversion.h"

namespace clrsampler::arm64 {

// Whether a search is worth while: something is compared with the limit, or a branch depends on the level.
bool MayReportAllocations(std::span<const std::byte> code);
AllocationReports FindAllocationReports(std::span<const std::byte> code, VirtualAddress start);

// A function that is nothing but the report has its facts at its entry: these.
std::optional<AllocationFacts> FactsOfReport(std::span<const std::byte> code);

}  // namespace clrsampler::arm64

#endif  // CLRSAMPLER_CLR_HOOKS_ALLOCATION_SCAN_ARM64_H_
