// Finds the functions that return: directly, or by way of functions that they continue in.
#ifndef CLRSAMPLER_FORMATS_ELF_RETURN_ANALYSIS_H_
#define CLRSAMPLER_FORMATS_ELF_RETURN_ANALYSIS_H_

#include "formats/elf/control_flow_graph.h"

namespace clrsampler {

// Sets `returning`, which surely return, and `no_return`, which no path returns from.
void AnalyzeReturns(const ControlFlowGraph& graph, CallKnowledge& known);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_RETURN_ANALYSIS_H_
