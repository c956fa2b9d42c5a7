// A recording of allocations in short: how much, of which types, and in which methods.
#ifndef CLRSAMPLER_OUTPUT_ALLOCATION_SUMMARY_H_
#define CLRSAMPLER_OUTPUT_ALLOCATION_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/account.h"
#include "profile/stack_table.h"
#include "symbols/frame.h"

namespace clrsampler {

struct AllocatedBytes {
  std::string name;
  uint64_t bytes = 0;
};

struct AllocationSummary {
  uint64_t bytes = 0;
  std::vector<AllocatedBytes> types;    // most bytes first; "[type not seen]" is one of them
  std::vector<AllocatedBytes> methods;  // that allocate, callers of the types; most bytes first
};

// Takes stacks as a recording of allocations has them, which end in the object's type.
AllocationSummary SummarizeAllocations(const FrameTable& frames, const StackTable& stacks);

// Each line ends in a newline. At most `rows` types and methods; names are made printable.
std::string AllocationSummaryText(const AllocationSummary& summary, const Account& account, size_t rows);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_ALLOCATION_SUMMARY_H_
