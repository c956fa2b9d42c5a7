#include "formats/mip/mip_order.h"

#include <algorithm>
#include <numeric>

#include "formats/mip/saturating.h"

namespace clrsampler {

std::vector<uint32_t> MipFunctionOrder(const MipProfile& profile) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < profile.functions.size(); ++i) {
    if (profile.functions[i].ran()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const MipFunction &one = profile.functions[a], &two = profile.functions[b];
    // The fractions brought to one denominator: 64 and 32 bits, a product of 96.
    __extension__ using Product = unsigned __int128;
    return Product{one.timestamp_sum} * two.merge_count < Product{two.timestamp_sum} * one.merge_count;
  });
  return order;
}

MipTotals TotalsOf(const MipProfile& profile) {
  MipTotals totals{.functions = profile.functions.size()};
  for (const MipFunction& function : profile.functions) {
    totals.raw_profiles = std::max(totals.raw_profiles, function.merge_count);
    totals.functions_ran += function.ran();
    totals.blocks += uint64_t{1} + function.block_count;
    const std::span<const uint8_t> covered = profile.CoveredOf(function);
    totals.blocks_ran += function.entry_ran() + std::accumulate(covered.begin(), covered.end(), uint64_t{0});
    totals.calls = SaturatingSum(totals.calls, function.call_count);
    totals.nameless += function.name == kNoMipName;
  }
  return totals;
}

}  // namespace clrsampler
