// The facts about a profile as a whole: the order in which its functions first ran, and its totals.
#ifndef CLRSAMPLER_FORMATS_MIP_MIP_ORDER_H_
#define CLRSAMPLER_FORMATS_MIP_MIP_ORDER_H_

#include <cstdint>
#include <vector>

#include "formats/mip/mip_profile.h"

namespace clrsampler {

// Functions that ran, by the average of their first-call ordinals (timestamp_sum / merge_count, compared exactly):
// indexes in profile.functions. Equal ones stay in the order of the file; in a profile of coverage all are equal.
std::vector<uint32_t> MipFunctionOrder(const MipProfile& profile);

struct MipTotals {
  uint32_t raw_profiles = 0;  // the most in which any function ran: not less were merged
  uint64_t functions = 0;
  uint64_t functions_ran = 0;
  uint64_t blocks = 0;  // entry blocks included
  uint64_t blocks_ran = 0;
  uint64_t calls = 0;     // saturating
  uint64_t nameless = 0;  // functions whose name the file does not have
};
MipTotals TotalsOf(const MipProfile& profile);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_MIP_MIP_ORDER_H_
