#include "clr/hooks/jit_flags.h"

#include "formats/names/tier.h"

namespace clrsampler {
namespace {

constexpr uint64_t Bit(int number) { return uint64_t{1} << number; }
// The runtime says DEBUG_CODE of modules of Debug builds, and MIN_OPT of single methods.
constexpr uint64_t kDebugCode = Bit(2), kMinOpt = Bit(5), kOsr = Bit(7), kIlStub = Bit(16), kInstrumented = Bit(18),
                   kInstrumentedIfLoops = Bit(19), kTier0 = Bit(26), kTier1 = Bit(27);

}  // namespace

absl::string_view JitTierText(uint64_t flags) {
  if ((flags & kTier0) != 0) {
    // The first version of a method only counts in loops. The version that is made to be instrumented counts
    // everywhere.
    return (flags & kInstrumented) != 0 && (flags & kInstrumentedIfLoops) == 0 ? tier::kInstrumented
                                                                               : tier::kQuickJitted;
  }
  if ((flags & kTier1) != 0) {
    if ((flags & kOsr) != 0) return tier::kOptimizedTier1Osr;
    return (flags & kInstrumented) != 0 ? tier::kInstrumentedOptimized : tier::kOptimizedTier1;
  }
  return (flags & (kMinOpt | kDebugCode)) != 0 ? tier::kMinOptJitted : tier::kOptimized;
}

bool IsIlStub(uint64_t flags) { return (flags & kIlStub) != 0; }

}  // namespace clrsampler
