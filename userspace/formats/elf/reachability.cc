#include "formats/elf/reachability.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "formats/elf/abstract_state.h"
#include "formats/elf/data_flow.h"
#include "formats/x64/instruction.h"

namespace clrsampler {
namespace {

using Flow = X64Instruction::Flow;

class Prover {
 public:
  Prover(const CodeAreas& code, const ControlFlowGraph& graph, const CallKnowledge& known,
         const std::vector<bool>& refused)
      : code_(code), graph_(graph), known_(known), refused_(refused), proved_(code.bytes(), 0) {}

  std::vector<uint8_t> Run() && {
    for (const FlowFunction& function : graph_.functions) {
      if (!function.guessed && IsCode(function.start)) proved_[function.start] |= kFromAbove;
    }
    // Up and down by turns, both at least once.
    while (true) {
      Pass(true);
      if (!Pass(false)) return std::move(proved_);
    }
  }

 private:
  bool IsCode(CodeIndex at) const {
    return at < code_.bytes() && graph_.Reached(at) && !refused_[graph_.Shared(graph_.function_of[at])];
  }

  // Whether it proved something more.
  bool Pass(bool up) {
    more_ = false;
    for (uint64_t i = 0; i < code_.bytes(); ++i) {
      const CodeIndex at = static_cast<CodeIndex>(up ? code_.bytes() - 1 - i : i);
      if (!IsCode(at)) continue;
      const CodeArea& area = code_.AreaOf(at);
      if (const auto instruction = area.Decode(at)) Visit(area, at, *instruction);
    }
    return more_;
  }

  void Visit(const CodeArea& area, CodeIndex at, const X64Instruction& instruction) {
    const CodeIndex next = at + instruction.bytes;
    const CodeIndex target = code_.Target(area, next, instruction.distance);
    const Flow flow = instruction.flow;
    const bool calls = flow == Flow::kCall || flow == Flow::kIndirectCall;
    const bool jumps = flow == Flow::kJump || flow == Flow::kBranch;
    bool leads_out = flow == Flow::kReturn;
    if (jumps && Follow(at, instruction, target, true)) leads_out = true;
    // A compiler may know that an imported function does not return, and let other code follow its call. It does not
    // know this of a function pointer.
    const bool returns =
        flow == Flow::kCall ? known_.returning.contains(target) : flow != Flow::kIndirectCall || !instruction.by_ip;
    if ((flow == Flow::kNext || flow == Flow::kBranch || calls) && Follow(at, instruction, next, returns)) {
      leads_out = true;
    }
    if (leads_out && (proved_[at] & kFromBelow) == 0) {
      proved_[at] |= kFromBelow;
      more_ = true;
    }
  }

  // Whether the way from one instruction to the other leads out. A sure way proves the other one from above.
  bool Follow(CodeIndex at, const X64Instruction& instruction, CodeIndex to, bool sure) {
    if (!sure) return false;
    bool leads_out = to != kNoCode && graph_.Begins(to);
    if (!IsCode(to)) return leads_out;
    if ((proved_[to] & kFromBelow) != 0 && graph_.StateAt(to) == After(at, instruction)) leads_out = true;
    if ((proved_[at] & kFromAbove) != 0 && (proved_[to] & kFromAbove) == 0) {
      proved_[to] |= kFromAbove;
      more_ = true;
    }
    return leads_out;
  }

  AbstractState After(CodeIndex at, const X64Instruction& instruction) const {
    AbstractState state = graph_.StateAt(at);
    if (instruction.flow == Flow::kNext) Transfer(instruction, state);
    return state;
  }

  const CodeAreas& code_;
  const ControlFlowGraph& graph_;
  const CallKnowledge& known_;
  const std::vector<bool>& refused_;
  std::vector<uint8_t> proved_;
  bool more_ = false;
};

}  // namespace

void RefuseOverlaps(const CodeAreas& code, ControlFlowGraph& graph) {
  for (const CodeArea& area : code.all()) {
    CodeIndex outer = area.first, end = area.first;
    for (CodeIndex at = area.first; area.Contains(at); ++at) {
      if (!graph.Reached(at)) continue;
      const auto instruction = area.Decode(at);
      if (!instruction) continue;
      if (at < end && graph.state_of[at] != graph.state_of[outer]) {
        graph.functions[graph.function_of[at]].refused = graph.functions[graph.function_of[outer]].refused = true;
      }
      if (at + instruction->bytes > end) {
        outer = at;
        end = at + instruction->bytes;
      }
    }
  }
}

std::vector<bool> RefusedFunctions(const ControlFlowGraph& graph) {
  std::vector<bool> refused(graph.functions.size());
  for (size_t i = 0; i < graph.functions.size(); ++i) {
    if (graph.functions[i].refused) refused[graph.Shared(static_cast<uint32_t>(i))] = true;
  }
  return refused;
}

std::vector<uint8_t> Prove(const CodeAreas& code, const ControlFlowGraph& graph, const CallKnowledge& known,
                           const std::vector<bool>& refused) {
  return Prover(code, graph, known, refused).Run();
}

struct WaysOut::Search {
  std::vector<CodeIndex> left;
  absl::flat_hash_set<CodeIndex> seen;
  bool out = false;
};

WaysOut::WaysOut(const CodeAreas& code, const ControlFlowGraph& graph, const CallKnowledge& known)
    : code_(code), graph_(graph), known_(known), budget_(kStepsForEachByte * code.bytes()) {}

bool WaysOut::LeadsOut(CodeIndex from) {
  Search search{{from}, {from}};
  while (!search.left.empty() && !search.out) {
    const CodeIndex at = search.left.back();
    search.left.pop_back();
    if (budget_ == 0) return true;
    --budget_;
    if (!graph_.Reached(at)) continue;  // behind a call that does not return
    const CodeArea& area = code_.AreaOf(at);
    const auto instruction = area.Decode(at);
    if (!instruction || Expand(area, at, *instruction, search)) return true;
  }
  return search.out;
}

bool WaysOut::Expand(const CodeArea& area, CodeIndex at, const X64Instruction& instruction, Search& search) const {
  const CodeIndex next = at + instruction.bytes;
  const CodeIndex target = code_.Target(area, next, instruction.distance);
  switch (instruction.flow) {
    case Flow::kReturn:
    case Flow::kIndirectJump:
      return true;
    case Flow::kStop:
      break;
    case Flow::kBranch:
      Add(target, search);
      Add(next, search);
      break;
    case Flow::kJump:
      Add(target, search);
      break;
    case Flow::kCall:
      if (!known_.no_return.contains(target)) Add(next, search);
      break;
    case Flow::kIndirectCall:
    case Flow::kNext:
      Add(next, search);
      break;
  }
  return false;
}

void WaysOut::Add(CodeIndex to, Search& search) const {
  if (to == kNoCode || to >= code_.bytes() || graph_.Begins(to)) {
    search.out = true;
  } else if (search.seen.insert(to).second) {
    search.left.push_back(to);
  }
}

}  // namespace clrsampler
