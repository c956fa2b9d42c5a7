// The unwind data of a compiled method in a process's memory.
#ifndef CLRSAMPLER_CLR_MEMORY_METHOD_UNWIND_READER_H_
#define CLRSAMPLER_CLR_MEMORY_METHOD_UNWIND_READER_H_

#include <vector>

#include "clr/memory/code_ranges.h"
#include "clr/memory/runtime_layout.h"
#include "process/target_memory.h"
#include "symbols/code_source.h"

namespace clrsampler {

// The parts of `code`, which was found with this layout. Each part takes two reads on x86-64, and two more for each
// part that it is chained to; on arm64 it takes two or three. Empty: something can't be read, is damaged, or the parts
// contradict `code`. The caller looks afterwards whether the method still stands.
std::vector<CodeUnwind> ReadUnwindParts(MemoryReader& memory, const RuntimeLayout& layout, const MethodCode& code);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_METHOD_UNWIND_READER_H_
