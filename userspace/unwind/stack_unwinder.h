// From a raw stack to all of its frames, exactly: each function is stepped out of by its own unwind data, over the
// words that the sample brought along.
//
// The frame-pointer chain alone skips the callers of functions that set up no frame, which is a third of optimised .NET
// code on x86-64. It shows a return address that on-stack replacement left behind, and ends where native code keeps
// data in the frame pointer. Replay has none of that. Where a step is not possible it falls back to the chain, and says
// so at that frame: an unwind that looks whole and is not would be worse than one that ends.
#ifndef CLRSAMPLER_UNWIND_STACK_UNWINDER_H_
#define CLRSAMPLER_UNWIND_STACK_UNWINDER_H_

#include <array>
#include <cstdint>
#include <utility>

#include "clrsampler/wire.h"
#include "unwind/cfi_step.h"
#include "unwind/code_finder.h"
#include "unwind/frame_chain.h"
#include "unwind/raw_stack.h"
#include "unwind/sample_memory.h"

namespace clrsampler {

struct UnwindCounters {
  uint64_t by_origin[kFrameOrigins] = {};
  uint64_t checked = 0;         // steps whose frame is known twice: by the stack pointer and by the frame pointer
  uint64_t contradictions = 0;  // of these, where the two differ
  // Steps that fell back to the chain, by reason.
  uint64_t missing_words = 0;  // a word that was needed was not shipped
  uint64_t unsupported = 0;    // unwind data with a rule that samples have no registers for
  uint64_t no_data = 0;        // code without unwind data
  uint64_t no_code = 0;        // a return address where no code is
  uint64_t lost = 0;           // stacks that ended there, since there was no chain to fall back to

  UnwindCounters& operator+=(const UnwindCounters& more);
};

class StackUnwinder {
 public:
  struct Options {
    uint32_t max_frames = 1024;
    ElfMachine machine = kHostMachine;
  };
  explicit StackUnwinder(Options options) : options_(options) {}

  // Any parsed record. `out` is reused between calls.
  void Walk(const RawStack& stack, CodeFinder& code, UserStack& out);

  const UnwindCounters& counters() const { return counters_; }
  // And begins again.
  UnwindCounters TakeCounters() { return std::exchange(counters_, {}); }
  // Those of a walk by another one whose result is taken for this one's.
  void Count(const UnwindCounters& walk) { counters_ += walk; }

 private:
  struct Step;
  struct Position;

  Position Begin(const RawStack& stack);
  bool Advance(CodeFinder& finder, Position& at, UserStack& out);
  void AddFrame(const CodeAt& code, uint64_t lookup, Position& at, UserStack& out);
  bool TakeStep(const Step& step, Position& at, UserStack& out);
  bool SkipByChain(const Step& step, Position& at, UserStack& out);
  bool EndBroken(UserStack& out);

  Step StepByData(const CodeAt& code, CodeFinder& finder, const UnwindRegisters& registers, bool exact, bool in_doubt);
  Step StepManaged(const CodeAt& code, const UnwindRegisters& registers, bool exact, bool in_doubt);
  Step StepNative(const CodeAt& code, CodeFinder& finder, const UnwindRegisters& registers, bool exact, bool in_doubt);
  Step StepWithoutRow(const CodeAt& code, CodeFinder& finder, const UnwindRegisters& registers, bool exact);
  Step StepStub(const CodeAt& code, const UnwindRegisters& registers, bool exact);
  Step StepUnknown(const CodeAt& code, const UnwindRegisters& registers, bool exact);
  Step StepByReturnAddress(const UnwindRegisters& registers);
  Step FallBack(uint64_t& reason, FrameDoubt doubt, const UnwindRegisters& registers);
  static Step StepTo(FrameOrigin origin, const UnwindRegisters& caller);
  bool HasReturnAddressOnTop(CodeFinder& finder, const UnwindRegisters& registers) const;
  Step StepByRecord(const CodeAt& code, const UnwindRegisters& registers, bool exact);
  Step StepByChain(const UnwindRegisters& registers) const;

  const Options options_;
  SampleMemory memory_;
  std::array<uint64_t, WIRE_GENERAL_REGISTERS> general_{};  // of the sample at hand
  UnwindCounters counters_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_STACK_UNWINDER_H_
