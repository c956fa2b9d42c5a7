// The data-flow analysis: follows code along all its paths, with the abstract state of the stack.
//
// A function is followed from its first instruction on, along branches and jumps. Paths behind calls and arms of
// switches are tried: they count as a whole, or not at all.
#ifndef CLRSAMPLER_FORMATS_ELF_DATA_FLOW_H_
#define CLRSAMPLER_FORMATS_ELF_DATA_FLOW_H_

#include "formats/elf/control_flow_graph.h"
#include "formats/elf/elf_image.h"
#include "formats/elf/function_starts.h"

namespace clrsampler {

constexpr uint64_t kStepsForEachByte = 4;

// One pass over all code. Learns which functions are called, and what tables code takes the address of.
ControlFlowGraph FollowCode(const ElfImage& image, const CodeAreas& code, const FunctionStarts& starts,
                            CallKnowledge& known);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_DATA_FLOW_H_
