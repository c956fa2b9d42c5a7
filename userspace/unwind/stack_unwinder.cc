#include "unwind/stack_unwinder.h"

#include <algorithm>

#include "unwind/cfi_step.h"
#include "unwind/managed_step.h"

namespace clrsampler {
namespace {

constexpr int kMaxSignalFrames = 16;
// The largest function of hand-written code without unwind data.
constexpr uint64_t kMaxFunctionBytes = 64 << 10;
constexpr uint64_t kSystemCallBytes = 2;  // syscall

}  // namespace

UnwindCounters& UnwindCounters::operator+=(const UnwindCounters& more) {
  for (int i = 0; i < kFrameOrigins; ++i) by_origin[i] += more.by_origin[i];
  checked += more.checked;
  contradictions += more.contradictions;
  missing_words += more.missing_words;
  unsupported += more.unsupported;
  no_data += more.no_data;
  no_code += more.no_code;
  lost += more.lost;
  return *this;
}

struct StackUnwinder::Step {
  enum class Kind : uint8_t { kCaller, kOutermost, kFailed };
  Kind kind = Kind::kFailed;
  FrameOrigin origin = FrameOrigin::kChain;
  FrameDoubt doubt = FrameDoubt::kNone;
  bool exact = false;  // the caller was interrupted and did not call: its address is that of the next instruction
  UnwindRegisters caller;
  bool leaves_parent = false;  // out of a funclet and of its method at once
};

// {saved frame pointer, return address} at the frame pointer; x86-64 and AArch64 alike.
StackUnwinder::Step StackUnwinder::StepByChain(const UnwindRegisters& registers) const {
  Step step;
  const uint64_t frame = registers.fp;
  // A frame pointer of zero is how a thread's outermost frame is marked.
  if (frame == 0) return Step{Step::Kind::kOutermost};
  if (frame < registers.sp) return step;
  const std::optional<uint64_t> saved = memory_.Word(frame);
  const std::optional<uint64_t> address = memory_.Word(frame + sizeof(uint64_t));
  if (!saved || !address) return step;
  step.caller = {*address & kUserAddressMask, frame + 2 * sizeof(uint64_t), *saved, 0,
                 options_.machine == ElfMachine::kX64};
  step.kind = step.caller.ip == 0 ? Step::Kind::kOutermost : Step::Kind::kCaller;
  return step;
}

// Managed code on arm64, which keeps a frame record but for a few instructions.
StackUnwinder::Step StackUnwinder::StepByRecord(const CodeAt& code, const UnwindRegisters& registers, bool exact) {
  if (exact && code.has_row) {
    const CfiStepResult result = CfiStep(code.row, exact, registers, memory_, ElfMachine::kArm64);
    if (result.outcome == CfiStepOutcome::kCaller) {
      return {Step::Kind::kCaller, FrameOrigin::kUnwindInfo, FrameDoubt::kNone, false, result.caller};
    }
  }
  Step step = StepByChain(registers);
  // Some code called it, always. A frame pointer of zero is one that was not found.
  const bool lost = step.kind == Step::Kind::kOutermost;
  if (lost) ++counters_.missing_words;
  const bool skips = exact && (code.has_row || (code.may_have_no_record() && step.kind == Step::Kind::kCaller &&
                                                step.caller.ip != (registers.lr & kUserAddressMask)));
  if (skips) ++counters_.no_data;
  if (lost || skips) {
    step.origin = FrameOrigin::kFallback;
    step.doubt = FrameDoubt::kCallerMayBeMissing;
  }
  return step;
}

// Whether the word on top of the stack can be the return address of x86-64 code between rows, which has no frame. It is
// something else if the function does have a frame, since all are without rows there: a saved register, or a remnant of
// a call of long ago.
//
// glibc's clone3 and clone have rows up to the system call that begins a thread. Both threads come out of it. The new
// one has a stack without a return address, so the rows end there.
bool StackUnwinder::HasReturnAddressOnTop(CodeFinder& finder, const UnwindRegisters& registers) const {
  const std::optional<uint64_t> word = memory_.Word(registers.sp);
  if (!word) return true;  // then it is not known
  const uint64_t address = *word & kUserAddressMask;
  if (address == 0) return false;
  const CodeAt& caller = finder.At(address - 1);
  if (!caller.mapped || (caller.no_call && !caller.row.signal_frame)) return false;
  if (caller.call_distance == 0) return true;
  const uint64_t called = address + static_cast<uint64_t>(int64_t{caller.call_distance});
  if (called > registers.ip || registers.ip - called > kMaxFunctionBytes) return false;
  if (finder.At(called).between_rows) return true;
  const CodeAt& before = finder.At(registers.ip - kSystemCallBytes - 1);
  return before.has_row && before.row.cfa == CfaRule::kSpOffset && before.row.cfa_offset == sizeof(uint64_t);
}

// The chain is followed, since the data does not lead on. `reason` is the counter of why.
StackUnwinder::Step StackUnwinder::FallBack(uint64_t& reason, FrameDoubt doubt, const UnwindRegisters& registers) {
  ++reason;
  Step step = StepByChain(registers);
  step.origin = FrameOrigin::kFallback;
  step.doubt = doubt;
  return step;
}

StackUnwinder::Step StackUnwinder::StepTo(FrameOrigin origin, const UnwindRegisters& caller) {
  const auto kind = caller.ip == 0 ? Step::Kind::kOutermost : Step::Kind::kCaller;
  return {kind, origin, FrameDoubt::kNone, false, caller};
}

// The caller of code that has no frame of its own.
StackUnwinder::Step StackUnwinder::StepByReturnAddress(const UnwindRegisters& registers) {
  if (options_.machine == ElfMachine::kArm64) {
    return StepTo(FrameOrigin::kStub, {registers.lr & kUserAddressMask, registers.sp, registers.fp, 0});
  }
  const std::optional<uint64_t> address = memory_.Word(registers.sp);
  if (!address) return FallBack(counters_.missing_words, FrameDoubt::kCallerMayBeMissing, registers);
  return StepTo(FrameOrigin::kStub, {*address & kUserAddressMask, registers.sp + sizeof(uint64_t), registers.fp, 0});
}

StackUnwinder::Step StackUnwinder::StepManaged(const CodeAt& code, const UnwindRegisters& registers, bool exact,
                                               bool in_doubt) {
  if (code.managed == nullptr) return StepByRecord(code, registers, exact);
  const ManagedStepResult result = ManagedStep(*code.managed, exact, registers, memory_);
  // A lost frame pointer is no witness, and neither is a step of a fallback.
  const bool checked = result.check != ManagedStepCheck::kNotCheckable && registers.fp != 0 && !in_doubt;
  if (checked) ++counters_.checked;
  if (checked && result.check == ManagedStepCheck::kContradicted) {
    return FallBack(counters_.contradictions, FrameDoubt::kContradiction, registers);
  }
  switch (result.kind) {
    case ManagedStepResult::Kind::kStepped: {
      Step step = StepTo(FrameOrigin::kUnwindInfo, result.caller);
      step.leaves_parent = result.how == ManagedStepHow::kFunclet;
      return step;
    }
    case ManagedStepResult::Kind::kMissingWord:
      return FallBack(counters_.missing_words, FrameDoubt::kCallerMayBeMissing, registers);
    case ManagedStepResult::Kind::kNotPossible:
      return FallBack(counters_.unsupported, FrameDoubt::kCallerMayBeMissing, registers);
  }
  return {};
}

// Native code without unwind data for this address. `code` is not to be used when the finder was asked again.
//
// A leaf on arm64 that returns to x30 has a row, since its instructions prove it (unwind_data/elf_unwind_data.cc). All
// others have saved x30, or are too long to tell. Compilers save x29 beside it, and let x29 point to the two. Assembly,
// and code that was compiled without frame pointers, leave the record of a caller in x29. Nothing tells these apart, so
// a step by the record is in doubt.
StackUnwinder::Step StackUnwinder::StepWithoutRow(const CodeAt& code, CodeFinder& finder,
                                                  const UnwindRegisters& registers, bool exact) {
  const bool may_have_no_frame = options_.machine == ElfMachine::kX64 && code.between_rows && exact;
  if (may_have_no_frame && HasReturnAddressOnTop(finder, registers)) return StepByReturnAddress(registers);
  Step step = StepByChain(registers);
  // Where a program begins there is no row, and a frame pointer of zero marks the end of the stack.
  if (step.kind == Step::Kind::kOutermost && !exact && registers.fp_known) return step;
  ++counters_.no_data;
  // Compilers keep no frame pointer where they optimise, nor does assembly. Then it is that of a caller.
  step.doubt = FrameDoubt::kCallerMayBeMissing;
  return step;
}

StackUnwinder::Step StackUnwinder::StepNative(const CodeAt& code, CodeFinder& finder, const UnwindRegisters& registers,
                                              bool exact, bool in_doubt) {
  if (!code.has_row) return StepWithoutRow(code, finder, registers, exact);
  const CfiRow& row = exact && code.has_leaf_row ? code.leaf_row : code.row;
  const CfiStepResult result = CfiStep(row, exact, registers, memory_, options_.machine);
  switch (result.outcome) {
    case CfiStepOutcome::kCaller: {
      Step step = StepTo(FrameOrigin::kTable, result.caller);
      step.exact = result.interrupted;
      return step;
    }
    case CfiStepOutcome::kOutermost:
      return {Step::Kind::kOutermost};
    case CfiStepOutcome::kMissingWord:
      return FallBack(counters_.missing_words, FrameDoubt::kCallerMayBeMissing, registers);
    case CfiStepOutcome::kUnsupported:
      return FallBack(counters_.unsupported, FrameDoubt::kCallerMayBeMissing, registers);
    case CfiStepOutcome::kContradiction:
      if (registers.fp == 0 || in_doubt)
        return FallBack(counters_.missing_words, FrameDoubt::kCallerMayBeMissing, registers);
      return FallBack(counters_.contradictions, FrameDoubt::kContradiction, registers);
  }
  return {};
}

StackUnwinder::Step StackUnwinder::StepStub(const CodeAt& code, const UnwindRegisters& registers, bool exact) {
  if (exact && code.has_row) {
    const CfiStepResult result = CfiStep(code.row, exact, registers, memory_, options_.machine);
    if (result.outcome == CfiStepOutcome::kCaller) return StepTo(FrameOrigin::kStub, result.caller);
  } else if (exact) {
    return StepByReturnAddress(registers);
  }
  return FallBack(counters_.no_data, FrameDoubt::kCallerMayBeMissing, registers);
}

StackUnwinder::Step StackUnwinder::StepUnknown(const CodeAt& code, const UnwindRegisters& registers, bool exact) {
  // A call through a bad pointer, or code that is gone. The caller is on top of the stack.
  if (exact && !code.mapped) return StepByReturnAddress(registers);
  if (code.omits_frames || !code.mapped) {
    return FallBack(counters_.no_data, FrameDoubt::kCallerMayBeMissing, registers);
  }
  // Code of other JIT compilers, of which nothing is known. Most keep frame pointers, or nobody could walk their
  // stacks. A mark at each of their frames would tell none from the other.
  ++counters_.no_data;
  return StepByChain(registers);
}

// `code` is the finder's, and not to be used when that was asked again.
StackUnwinder::Step StackUnwinder::StepByData(const CodeAt& code, CodeFinder& finder, const UnwindRegisters& registers,
                                              bool exact, bool in_doubt) {
  switch (code.kind) {
    case CodeKind::kManaged:
      return StepManaged(code, registers, exact, in_doubt);
    case CodeKind::kNative:
      return StepNative(code, finder, registers, exact, in_doubt);
    case CodeKind::kStub:
      return StepStub(code, registers, exact);
    case CodeKind::kReturnTrap:
      return FallBack(counters_.no_data, FrameDoubt::kCallerMayBeMissing, registers);
    case CodeKind::kUnknown:
      return StepUnknown(code, registers, exact);
  }
  return {};
}

// The place of a walk.
struct StackUnwinder::Position {
  UnwindRegisters registers;
  UnwindRegisters before;  // of the frame below
  bool exact = true;
  FrameOrigin origin = FrameOrigin::kSampled;
  int signal_frames = 0;
  bool below_is_funclet = false, below_is_managed = false;
  uint64_t method_below = 0;
};

StackUnwinder::Position StackUnwinder::Begin(const RawStack& stack) {
  const wire_cpu_sample& sample = stack.sample();
  memory_.Assign(stack);
  Position at;
  at.registers = {sample.ip, sample.sp, sample.fp, sample.lr};
  if (options_.machine == ElfMachine::kX64) {
    std::copy(std::begin(sample.general), std::end(sample.general), general_.begin());
    at.registers.general = general_.data();
  }
  return at;
}

bool StackUnwinder::EndBroken(UserStack& out) {
  ++counters_.lost;
  if (out.end != StackEnd::kTruncated) out.end = StackEnd::kBroken;
  return false;
}

// Goes on by the chain from `registers`, since the address at hand does not belong to a caller. False: the stack ends
// there.
bool StackUnwinder::SkipByChain(const Step& step, Position& at, UserStack& out) {
  out.frames.back().doubt = FrameDoubt::kCallerMayBeMissing;
  if (step.kind != Step::Kind::kCaller) return EndBroken(out);
  at.origin = FrameOrigin::kFallback;
  at.registers = step.caller;
  return true;
}

// A funclet and the method that it is a part of are one frame; so are a method and the stub that resumed it.
void StackUnwinder::AddFrame(const CodeAt& code, uint64_t lookup, Position& at, UserStack& out) {
  const uint64_t method = code.managed != nullptr ? code.managed->method_begin : 0;
  const bool is_part = at.below_is_funclet || (code.managed != nullptr && code.managed->resumption_stub);
  if (!(is_part && method != 0 && method == at.method_below)) {
    out.frames.push_back(
        {at.registers.ip, lookup, at.origin, FrameDoubt::kNone, at.registers.sp, at.registers.sp_exact});
  }
  at.below_is_funclet = code.managed != nullptr && code.managed->funclet;
  at.method_below = method;
  ++counters_.by_origin[static_cast<size_t>(at.origin)];
}

// Goes on to the caller of the frame that was added last. False: that frame is the last one.
bool StackUnwinder::TakeStep(const Step& step, Position& at, UserStack& out) {
  out.frames.back().doubt = step.doubt;
  if (step.kind == Step::Kind::kOutermost) {
    // The end of a chain that was only the last resort proves nothing.
    out.end = step.doubt == FrameDoubt::kNone ? StackEnd::kComplete : StackEnd::kBroken;
    return false;
  }
  // A stack that does not grow would never end. Signal handlers may have one of their own, but only this many.
  const bool leaves_handler = step.exact && ++at.signal_frames <= kMaxSignalFrames;
  const uint64_t sp = at.registers.sp;
  const bool grows = step.caller.sp > sp || (step.caller.sp == sp && at.exact) || leaves_handler;
  if (step.kind == Step::Kind::kFailed || !grows) {
    const bool said = step.kind == Step::Kind::kFailed && step.doubt != FrameDoubt::kNone;
    if (!said) out.frames.back().doubt = FrameDoubt::kCallerMayBeMissing;
    return EndBroken(out);
  }
  at.before = at.registers;
  at.registers = step.caller;
  at.exact = step.exact;
  // A lost frame pointer stays lost until some code has saved it.
  if (!at.before.fp_known && at.registers.fp == 0) at.registers.fp_known = false;
  at.origin = step.origin;
  // The next frame is a call of its own, also where a method calls itself.
  if (step.leaves_parent) at.below_is_funclet = false;
  return true;
}

// One frame, or one address that is none. False: the stack ends there.
bool StackUnwinder::Advance(CodeFinder& finder, Position& at, UserStack& out) {
  const uint64_t lookup = at.exact ? at.registers.ip : at.registers.ip - 1;
  const CodeAt* found = &finder.At(lookup);
  // The runtime has changed the return address of a managed method. It is no caller, and the true one is not on the
  // stack.
  if (found->kind == CodeKind::kNative && (at.below_is_managed || found->no_call)) {
    if (finder.At(at.registers.ip).kind == CodeKind::kReturnTrap) {
      ++counters_.no_data;
      at.below_is_managed = at.below_is_funclet = false;
      return SkipByChain(StepByChain(at.registers), at, out);
    }
    found = &finder.At(lookup);
  }
  const CodeAt& code = *found;
  at.below_is_managed = code.kind == CodeKind::kManaged;
  if (!code.mapped && at.origin != FrameOrigin::kSampled) {
    ++counters_.no_code;
    // The data led to a place that is no code. The chain may know better, once.
    const bool by_data = at.origin != FrameOrigin::kFallback && at.origin != FrameOrigin::kChain;
    at.exact = false;
    return SkipByChain(by_data ? StepByChain(at.before) : Step(), at, out);
  }
  AddFrame(code, lookup, at, out);
  return TakeStep(StepByData(code, finder, at.registers, at.exact, at.origin == FrameOrigin::kFallback), at, out);
}

void StackUnwinder::Walk(const RawStack& stack, CodeFinder& finder, UserStack& out) {
  out.frames.clear();
  const wire_cpu_sample& sample = stack.sample();
  out.end = EndOfStop(sample.stop);
  if ((sample.flags & WIRE_SAMPLE_KTHREAD) != 0 || sample.ip == 0) return;
  Position at = Begin(stack);
  while (out.frames.size() < options_.max_frames) {
    if (!Advance(finder, at, out)) return;
  }
  out.end = StackEnd::kTruncated;
}

}  // namespace clrsampler
