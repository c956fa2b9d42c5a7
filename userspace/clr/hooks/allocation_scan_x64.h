// Reads in x86-64 code where the collector reports allocated memory (gc_heap::fire_etw_allocation_event,
// src/coreclr/gc/gc.cpp). All functions here get the bytes of one function, from its first to its last, and step
// through them instruction by instruction.
//
// The report has one shape in all versions. The sum is compared with 100 KB, the event's level with 5, and bit 0 of its
// keywords is tested. Slot 14 of the event sink is called with (sink, bytes, kind, heap, object, size). These arguments
// are followed back to the registers that hold them at the probe.
#ifndef CLRSAMPLER_CLR_HOOKS_ALLOCATION_SCAN_X64_H_
#define CLRSAMPLER_CLR_HOOKS_ALLOCATION_SCAN_X64_H_

#include <cstddef>
#include <optional>
#include <span>

#include "clr/hooks/allocation_place.h"
#include "formats/elf/address_conversion.h"

namespace clrsampler::x64 {

// Whether a search is worth while: the limit is somewhere among the bytes.
bool MayReportAllocations(std::span<const std::byte> code);
AllocationReports FindAllocationReports(std::span<const std::byte> code, VirtualAddress start);

// A function that is nothing but the report has its facts at its entry: these.
std::optional<AllocationFacts> FactsOfReport(std::span<const std::byte> code);

}  // namespace clrsampler::x64

#endif  // CLRSAMPLER_CLR_HOOKS_ALLOCATION_SCAN_X64_H_
