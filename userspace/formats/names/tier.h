// How much the JIT compiler optimised a body of a method: the words of the runtime's perf map
// (PrepareCodeConfig::GetJitOptimizationTierStr in src/coreclr/vm/prestub.cpp), the same in .NET 8 to 11.
#ifndef CLRSAMPLER_FORMATS_NAMES_TIER_H_
#define CLRSAMPLER_FORMATS_NAMES_TIER_H_

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace clrsampler::tier {

inline constexpr absl::string_view kUnknown = "Unknown";
inline constexpr absl::string_view kMinOptJitted = "MinOptJitted";  // for good: a Debug build, [NoOptimization]
inline constexpr absl::string_view kOptimized = "Optimized";        // at once
inline constexpr absl::string_view kQuickJitted = "QuickJitted";
inline constexpr absl::string_view kOptimizedTier1 = "OptimizedTier1";
inline constexpr absl::string_view kOptimizedTier1Osr = "OptimizedTier1OSR";
inline constexpr absl::string_view kInstrumented = "InstrumentedTier";
inline constexpr absl::string_view kInstrumentedOptimized = "InstrumentedTierOptimized";
inline constexpr absl::string_view kPrecompiled = "PreJIT";
inline constexpr absl::string_view kPrecompiledCold = "PreJit-cold";

// Such code runs statement by statement, so that its lines are exact.
inline bool IsUnoptimised(absl::string_view word) {
  return word == kMinOptJitted || word == kQuickJitted || word == kInstrumented;
}

inline bool IsPrecompiled(absl::string_view word) { return absl::StartsWithIgnoreCase(word, kPrecompiled); }

}  // namespace clrsampler::tier

#endif  // CLRSAMPLER_FORMATS_NAMES_TIER_H_
