// Decides which instructions of a control flow graph are believed: refuses functions that contradict each other, and
// proves the rest.
#ifndef CLRSAMPLER_FORMATS_ELF_REACHABILITY_H_
#define CLRSAMPLER_FORMATS_ELF_REACHABILITY_H_

#include <cstdint>
#include <vector>

#include "formats/elf/control_flow_graph.h"

namespace clrsampler {

enum Proof : uint8_t { kFromAbove = 1, kFromBelow = 2 };

// Instructions inside others, as behind a lock prefix that is jumped over, must say the same.
void RefuseOverlaps(const CodeAreas& code, ControlFlowGraph& graph);

// By function, for those that stand for all that share their code.
std::vector<bool> RefusedFunctions(const ControlFlowGraph& graph);

// Finds the instructions that are proved: those that lead to where the function returns, and those that its first one
// leads to by way of nothing but functions that return. By index: bits of Proof.
std::vector<uint8_t> Prove(const CodeAreas& code, const ControlFlowGraph& graph, const CallKnowledge& known,
                           const std::vector<bool>& refused);

// Whether paths lead from an instruction to where its function returns.
class WaysOut {
 public:
  WaysOut(const CodeAreas& code, const ControlFlowGraph& graph, const CallKnowledge& known);
  bool LeadsOut(CodeIndex from);

 private:
  struct Search;
  // Adds what the instruction leads to. True: it leads out.
  bool Expand(const CodeArea& area, CodeIndex at, const X64Instruction& instruction, Search& search) const;
  void Add(CodeIndex to, Search& search) const;

  const CodeAreas& code_;
  const ControlFlowGraph& graph_;
  const CallKnowledge& known_;
  uint64_t budget_;  // steps of all questions
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_REACHABILITY_H_
