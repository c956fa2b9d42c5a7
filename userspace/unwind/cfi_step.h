// One step from a frame of native code to its caller, by the CFI row of its address.
#ifndef CLRSAMPLER_UNWIND_CFI_STEP_H_
#define CLRSAMPLER_UNWIND_CFI_STEP_H_

#include <cstdint>

#include "formats/elf/cfi_rows.h"
#include "formats/elf/elf_image.h"
#include "unwind/registers.h"

namespace clrsampler {

enum class CfiStepOutcome : uint8_t {
  kCaller,         // `caller` is right if the row and the registers are
  kOutermost,      // the row says that nothing called this frame
  kMissingWord,    // `missing` was not shipped with the sample
  kUnsupported,    // the row needs what a sample does not have
  kContradiction,  // row, registers and stack do not fit together: the stack does not shrink, no return address
};

struct CfiStepResult {
  CfiStepOutcome outcome = CfiStepOutcome::kUnsupported;
  UnwindRegisters caller;  // of kCaller
  // The caller was interrupted by a signal. Its ip is the next instruction, not a return address, its registers are
  // exact, and it is to be treated like a leaf.
  bool interrupted = false;
  // False: caller.fp is 0 because the row does not say where it is, or the word was not shipped. Rows that go by it
  // fail then (kContradiction); those that go by sp don't need it.
  bool fp_known = true;
  uint64_t missing = 0;  // address of the word of kMissingWord
};

#ifdef __aarch64__
inline constexpr ElfMachine kHostMachine = ElfMachine::kArm64;
#else
inline constexpr ElfMachine kHostMachine = ElfMachine::kX64;
#endif

// `leaf`: the frame was sampled or interrupted, so all its registers are known. Bounded and without side effects. A
// caller that does it in a loop bounds the number of frames (sp grows with each step, but for signal frames, whose
// handler may have a stack of its own).
CfiStepResult CfiStep(const CfiRow& row, bool leaf, const UnwindRegisters& registers, const StackMemory& stack,
                      ElfMachine machine = kHostMachine);

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_CFI_STEP_H_
