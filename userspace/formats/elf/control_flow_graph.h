// The control flow of an image's code: its functions, and the abstract state before each instruction that is reached.
#ifndef CLRSAMPLER_FORMATS_ELF_CONTROL_FLOW_GRAPH_H_
#define CLRSAMPLER_FORMATS_ELF_CONTROL_FLOW_GRAPH_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "formats/elf/abstract_state.h"
#include "formats/elf/code_areas.h"

namespace clrsampler {

constexpr uint32_t kNoState = UINT32_MAX, kNoFunction = UINT32_MAX;

struct FlowFunction {
  CodeIndex start;
  uint32_t shares = kNoFunction;  // its code with this one
  bool refused = false;
  bool guessed = false;                 // that it begins there
  bool returns = false;                 // it may
  bool has_return = false;              // it does
  std::vector<CodeIndex> continues_in;  // jumps to these functions
};

struct ControlFlowGraph {
  std::vector<AbstractState> states;
  std::vector<FlowFunction> functions;
  // By the index of code.
  std::vector<uint32_t> state_of, function_of;  // of the instruction that begins there
  std::vector<uint32_t> function_at;            // that is known to begin there

  bool Reached(CodeIndex at) const { return state_of[at] != kNoState; }
  bool Begins(CodeIndex at) const { return at < function_at.size() && function_at[at] != kNoFunction; }
  const AbstractState& StateAt(CodeIndex at) const { return states[state_of[at]]; }
  // The function that stands for all that share code with this one.
  uint32_t Shared(uint32_t function) const {
    while (functions[function].shares != kNoFunction) function = functions[function].shares;
    return function;
  }
  // The same, and makes the ways there short: one function after the other may have come to share its code.
  uint32_t ShortenShared(uint32_t function) {
    const uint32_t whole = Shared(function);
    while (functions[function].shares != kNoFunction) function = std::exchange(functions[function].shares, whole);
    return whole;
  }
};

// The facts that passes over the code learn for those that follow.
struct CallKnowledge {
  absl::flat_hash_set<CodeIndex> called, no_return, returning;  // functions
  absl::flat_hash_set<uint64_t> tables;                         // addresses of data that code takes
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_CONTROL_FLOW_GRAPH_H_
