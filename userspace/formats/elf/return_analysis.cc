#include "formats/elf/return_analysis.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace clrsampler {
namespace {

// The functions that continue in others. Facts go from a function to those that continue in it, along each edge once:
// functions can form a chain as long as the code.
template <typename Place>
class Edges {
 public:
  void Add(Place from, Place to) { edges_.emplace_back(to, from); }
  void Sort() { std::sort(edges_.begin(), edges_.end()); }

  template <typename Reach>
  void ForEachInto(Place to, const Reach& reach) const {
    for (auto edge = std::lower_bound(edges_.begin(), edges_.end(), std::pair<Place, Place>(to, 0));
         edge != edges_.end() && edge->first == to; ++edge) {
      reach(edge->second);
    }
  }

 private:
  std::vector<std::pair<Place, Place>> edges_;
};

void FindReturning(const ControlFlowGraph& graph, absl::flat_hash_set<CodeIndex>& returning) {
  returning.clear();
  Edges<CodeIndex> edges;
  std::vector<CodeIndex> left;
  const auto reach = [&](CodeIndex start) {
    if (returning.insert(start).second) left.push_back(start);
  };
  for (const FlowFunction& function : graph.functions) {
    if (function.refused) continue;
    for (const CodeIndex next : function.continues_in) edges.Add(function.start, next);
    if (function.has_return) reach(function.start);
  }
  edges.Sort();
  while (!left.empty()) {
    const CodeIndex start = left.back();
    left.pop_back();
    edges.ForEachInto(start, reach);
  }
}

// By function, for the functions that stand for all that share their code. Shared code returns for all of them.
std::vector<bool> MayReturn(const ControlFlowGraph& graph) {
  const auto& functions = graph.functions;
  std::vector<bool> returns(functions.size());
  Edges<uint32_t> edges;
  std::vector<uint32_t> left;
  const auto reach = [&](uint32_t whole) {
    if (returns[whole]) return;
    returns[whole] = true;
    left.push_back(whole);
  };
  for (size_t i = 0; i < functions.size(); ++i) {
    const uint32_t whole = graph.Shared(static_cast<uint32_t>(i));
    for (const CodeIndex next : functions[i].continues_in) edges.Add(whole, graph.Shared(graph.function_at[next]));
    if (functions[i].returns || functions[i].refused) reach(whole);
  }
  edges.Sort();
  while (!left.empty()) {
    const uint32_t whole = left.back();
    left.pop_back();
    edges.ForEachInto(whole, reach);
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
