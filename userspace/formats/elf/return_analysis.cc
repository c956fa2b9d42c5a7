#include "formats/elf/return_analysis.h"

#include <algorithm>
#include <vector>

namespace clrsampler {
namespace {

void FindReturning(const ControlFlowGraph& graph, absl::flat_hash_set<CodeIndex>& returning) {
  returning.clear();
  for (bool more = true; more;) {
    more = false;
    for (const FlowFunction& function : graph.functions) {
      if (function.refused || returning.contains(function.start)) continue;
      const bool goes_on = std::any_of(function.continues_in.begin(), function.continues_in.end(),
                                       [&](CodeIndex next) { return returning.contains(next); });
      if (!function.has_return && !goes_on) continue;
      returning.insert(function.start);
      more = true;
    }
  }
}

// By function, for the functions that stand for all that share their code. Shared code returns for all of them.
std::vector<bool> MayReturn(const ControlFlowGraph& graph) {
  const auto& functions = graph.functions;
  std::vector<bool> returns(functions.size());
  for (size_t i = 0; i < functions.size(); ++i) {
    if (functions[i].returns || functions[i].refused) returns[graph.Shared(static_cast<uint32_t>(i))] = true;
  }
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < functions.size(); ++i) {
      const uint32_t whole = graph.Shared(static_cast<uint32_t>(i));
      if (returns[whole]) continue;
      for (const CodeIndex next : functions[i].continues_in) {
        if (!returns[graph.Shared(graph.function_at[next])]) continue;
        returns[whole] = more = true;
        break;
      }
    }
  }
  return returns;
}

}  // namespace

void AnalyzeReturns(const ControlFlowGraph& graph, CallKnowledge& known) {
  FindReturning(graph, known.returning);
  const std::vector<bool> returns = MayReturn(graph);
  known.no_return.clear();
  for (size_t i = 0; i < graph.functions.size(); ++i) {
    if (!returns[graph.Shared(static_cast<uint32_t>(i))]) known.no_return.insert(graph.functions[i].start);
  }
}

}  // namespace clrsampler
