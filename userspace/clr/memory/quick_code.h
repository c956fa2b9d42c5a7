// Tells whether the JIT compiler has compiled a method quickly, as the runtime had asked it to.
//
// Such a method may be optimised at once: where a loop can't be replaced while it runs, where a call has the prefix
// `tail.`, and where native code calls the method. The runtime then counts no calls of it, and notes that nowhere else.
// But the assembly tells whether the method has any of these, and code that is not optimised has a patchpoint for each
// loop.
#ifndef CLRSAMPLER_CLR_MEMORY_QUICK_CODE_H_
#define CLRSAMPLER_CLR_MEMORY_QUICK_CODE_H_

#include "clr/memory/code_ranges.h"
#include "clr/memory/runtime_types.h"
#include "formats/runtime/il_map_decoder.h"
#include "process/target_memory.h"

namespace clrsampler {

// `method` may rise through the tiers, and `code` is of its first version. Reads the process only if the IL has a loop:
// once or twice. False: that is not proven, as for a method whose IL is in no file.
bool IsQuickCode(MemoryReader& memory, DebugInfoFormat format, const RuntimeMethod& method, const MethodCode& code);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_QUICK_CODE_H_
