// One exact step out of managed code on x86-64. It goes from the registers of a frame to those of its caller, by the
// runtime's own unwind data. No frame pointer is needed for it. That makes a frame pointer a witness: in code that has
// one, the place where the caller's was saved is known twice.
//
// Measured on .NET 8.0.30, 9.0.19, 10.0.12 and 10.0.14: more than a million frames with two witnesses, no
// contradiction.
#ifndef CLRSAMPLER_UNWIND_MANAGED_STEP_H_
#define CLRSAMPLER_UNWIND_MANAGED_STEP_H_

#include <cstdint>

#include "unwind/code_finder.h"
#include "unwind/registers.h"

namespace clrsampler {

enum class ManagedStepHow : uint8_t {
  kBody,
  kPrologue,
  kEpilogue,
  // From a funclet to the caller of its parent, since both stand for one frame. The code that called the funclet, the
  // parent itself or the runtime's exception handling, is left out. Only where .NET 8 and 9 have a funclet save or
  // restore rbp it is left as if it were a method, with kPrologue or kEpilogue. Then its parent may follow (same
  // method_begin).
  kFunclet,
};

// Whether sp and rbp agree on where the caller's rbp was saved.
enum class ManagedStepCheck : uint8_t { kNotCheckable, kAgreed, kContradicted };

struct ManagedStepResult {
  enum class Kind : uint8_t {
    kStepped,
    kMissingWord,  // the stack does not hold the word at `missing`
    kNotPossible,  // not a state that this code can be in: it does not hold the address, or the caller's frame would
                   // not lie above its own
  };
  Kind kind = Kind::kNotPossible;
  ManagedStepHow how = ManagedStepHow::kBody;
  ManagedStepCheck check = ManagedStepCheck::kNotCheckable;
  UnwindRegisters caller;  // of kStepped; ip is the return address
  uint64_t missing = 0;
};

// `registers.ip` is as sampled for the leaf, else a return address. Reads at most three words of the stack, except in
// epilogues.
ManagedStepResult ManagedStep(const ManagedFunction& function, bool leaf, const UnwindRegisters& registers,
                              const StackMemory& stack);

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_MANAGED_STEP_H_
