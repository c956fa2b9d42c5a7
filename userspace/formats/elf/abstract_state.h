// The knowledge about the stack before an instruction: the state of the data-flow analysis, and how an instruction
// changes it.
#ifndef CLRSAMPLER_FORMATS_ELF_ABSTRACT_STATE_H_
#define CLRSAMPLER_FORMATS_ELF_ABSTRACT_STATE_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "formats/elf/cfi_rows.h"
#include "formats/x64/instruction.h"

namespace clrsampler {

constexpr int32_t kEntryDepth = 8;  // the return address

// Distances are from the CFA, which lies `depth` above sp.
struct AbstractState {
  int32_t depth = kEntryDepth;
  bool depth_known = true;
  bool fp_is_callers = true;
  bool has_frame = false;  // rbp points to CFA - frame
  bool has_slot = false;   // the caller's rbp lies at CFA - slot
  bool outermost = false;  // nothing called this code
  int32_t frame = 0;
  int32_t slot = 0;

  bool clean() const { return depth_known && depth == kEntryDepth && fp_is_callers && !outermost; }
  friend bool operator==(const AbstractState&, const AbstractState&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const AbstractState& s) {
    return H::combine(std::move(h), s.depth, s.depth_known, s.fp_is_callers, s.has_frame, s.has_slot, s.outermost,
                      s.frame, s.slot);
  }
};

// The transfer function: what the instruction makes of the state. False: it contradicts itself.
bool Transfer(const X64Instruction& instruction, AbstractState& state);

// Whether nothing called the code that begins with this instruction: a thread or a process. The state says so then.
void MarkOutermost(const X64Instruction& instruction, AbstractState& state);

// nullopt: the state says too little.
std::optional<CfiRow> RowOf(const AbstractState& state);
// The row of code that began without a return address.
CfiRow OutermostRow();

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_ABSTRACT_STATE_H_
