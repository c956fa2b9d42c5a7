#include "unwind/stack_replay.h"

#include <algorithm>

#include "unwind/cfi_step.h"
#include "unwind/managed_step.h"

namespace clrsampler {
namespace {

constexpr int kMaxSignalFrames = 16;
// Of hand-written code without unwind data.
constexpr uint64_t kMaxFunctionBytes = 64 << 10;
constexpr uint64_t kSystemCallBytes = 2;  // syscall

}  // namespace

ReplayCounters& ReplayCounters::operator+=(const ReplayCounters& more) {
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

struct StackReplay::Step {
  enum class Kind : uint8_t { kCaller, kOutermost, kFailed };
  Kind kind = Kind::kFailed;
  FrameOrigin origin = FrameOrigin::kChain;
  FrameDoubt doubt = FrameDoubt::kNone;
  bool exact = false;  // the caller was interrupted and did not call: its address is that of the next instruction
  UnwindRegisters caller;
};

// {saved frame pointer, return address} at the frame pointer; x86-64 and AArch64 alike.
StackReplay::Step StackReplay::StepByChain(const UnwindRegisters& registers) const {
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
StackReplay::Step StackReplay::StepByRecord(const CodeAt& code, const UnwindRegisters& registers, bool exact) {
  if (exact && code.has_row) {
    const CfiStepResult result = CfiStep(code.row, exact, registers, memory_, ElfMachine::kArm64);
    if (result.outcome == CfiStepOutcome::kCaller) {
      return {Step::Kind::kCaller, FrameOrigin::kReplay, FrameDoubt::kNone, false, result.caller};
    }
  }
  Step step = StepByChain(registers);
  // Something called it, always: a frame pointer of zero is one that was not found.
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

// Whether what is on top of the stack can be the return address of code between rows, which has no frame. Of a
// function that does have one, since all are without rows there, it is something else: a register that was saved, or
// what a call of long ago has left behind.
//
// glibc's clone3 and clone have rows up to the system call that begins a thread. Both threads come out of it, the new
// one on a stack without a return address, so the rows end there.
bool StackReplay::HasReturnAddressOnTop(CodeFinder& finder, const UnwindRegisters& registers) const {
  if (options_.machine != ElfMachine::kX64) return true;
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

// `code` is the finder's, and not to be used when that was asked again.
StackReplay::Step StackReplay::StepByData(const CodeAt& code, CodeFinder& finder, const UnwindRegisters& registers,
                                          bool exact, bool in_doubt) {
  Step step;
  const auto fall_back = [&](uint64_t& reason, FrameDoubt doubt) {
    ++reason;
    step = StepByChain(registers);
    step.origin = FrameOrigin::kFallback;
    step.doubt = doubt;
    return step;
  };
  const auto take = [&](FrameOrigin origin, const UnwindRegisters& caller) {
    step.kind = caller.ip == 0 ? Step::Kind::kOutermost : Step::Kind::kCaller;
    step.origin = origin;
    step.caller = caller;
    return step;
  };
  // What was called without a frame of its own returns to.
  const auto top_of_stack = [&] {
    if (options_.machine == ElfMachine::kArm64) {
      return take(FrameOrigin::kStub, {registers.lr & kUserAddressMask, registers.sp, registers.fp, 0});
    }
    const std::optional<uint64_t> address = memory_.Word(registers.sp);
    if (!address) return fall_back(counters_.missing_words, FrameDoubt::kCallerMayBeMissing);
    return take(FrameOrigin::kStub, {*address & kUserAddressMask, registers.sp + sizeof(uint64_t), registers.fp, 0});
  };
  switch (code.kind) {
    case CodeKind::kManaged: {
      if (code.managed == nullptr) return StepByRecord(code, registers, exact);
      const ManagedStepResult result = ManagedStep(*code.managed, exact, registers, memory_);
      // A frame pointer that is lost is no witness, nor is what a fallback led to.
      const bool checked = result.check != ManagedStepCheck::kNotCheckable && registers.fp != 0 && !in_doubt;
      if (checked) ++counters_.checked;
      if (checked && result.check == ManagedStepCheck::kContradicted) {
        return fall_back(counters_.contradictions, FrameDoubt::kContradiction);
      }
      switch (result.kind) {
        case ManagedStepResult::Kind::kStepped:
          return take(FrameOrigin::kReplay, result.caller);
        case ManagedStepResult::Kind::kMissingWord:
          return fall_back(counters_.missing_words, FrameDoubt::kCallerMayBeMissing);
        case ManagedStepResult::Kind::kNotPossible:
          return fall_back(counters_.unsupported, FrameDoubt::kCallerMayBeMissing);
      }
      return step;
    }
    case CodeKind::kNative: {
      if (!code.has_row) {
        const bool between_rows = code.between_rows;
        if (between_rows && exact && HasReturnAddressOnTop(finder, registers)) return top_of_stack();
        step = StepByChain(registers);
        // Where a program begins there is no row, and a frame pointer of zero marks the end of the stack.
        if (step.kind == Step::Kind::kOutermost && !exact && registers.fp_known) return step;
        ++counters_.no_data;
        // Code without unwind data is built with frame pointers, or is written by hand; a leaf may have no frame yet.
        if (exact || between_rows) step.doubt = FrameDoubt::kCallerMayBeMissing;
        return step;
      }
      const CfiRow& row = exact && code.has_leaf_row ? code.leaf_row : code.row;
      const CfiStepResult result = CfiStep(row, exact, registers, memory_, options_.machine);
      switch (result.outcome) {
        case CfiStepOutcome::kCaller:
          take(FrameOrigin::kTable, result.caller);
          step.exact = result.interrupted;
          return step;
        case CfiStepOutcome::kOutermost:
          step.kind = Step::Kind::kOutermost;
          return step;
        case CfiStepOutcome::kMissingWord:
          return fall_back(counters_.missing_words, FrameDoubt::kCallerMayBeMissing);
        case CfiStepOutcome::kUnsupported:
          return fall_back(counters_.unsupported, FrameDoubt::kCallerMayBeMissing);
        case CfiStepOutcome::kContradiction:
          if (registers.fp == 0 || in_doubt) return fall_back(counters_.missing_words, FrameDoubt::kCallerMayBeMissing);
          return fall_back(counters_.contradictions, FrameDoubt::kContradiction);
      }
      return step;
    }
    case CodeKind::kStub:
      if (exact && code.has_row) {
        const CfiStepResult result = CfiStep(code.row, exact, registers, memory_, options_.machine);
        if (result.outcome == CfiStepOutcome::kCaller) return take(FrameOrigin::kStub, result.caller);
      } else if (exact) {
        return top_of_stack();
      }
      return fall_back(counters_.no_data, FrameDoubt::kCallerMayBeMissing);
    case CodeKind::kReturnTrap:
      return fall_back(counters_.no_data, FrameDoubt::kCallerMayBeMissing);
    case CodeKind::kUnknown:
      // A call through a bad pointer, or code that is gone: what called it is on top of the stack.
      if (exact && !code.mapped) return top_of_stack();
      if (code.omits_frames || !code.mapped) return fall_back(counters_.no_data, FrameDoubt::kCallerMayBeMissing);
      // Other JIT compilers keep frame pointers, or nobody could walk their stacks.
      ++counters_.no_data;
      return StepByChain(registers);
  }
  return step;
}

void StackReplay::Walk(const RawStack& stack, CodeFinder& finder, UserStack& out) {
  out.frames.clear();
  const wire_cpu_sample& sample = stack.sample();
  out.end = EndOfStop(sample.stop);
  if ((sample.flags & WIRE_SAMPLE_KTHREAD) != 0 || sample.ip == 0) return;
  memory_.Assign(stack);
  UnwindRegisters registers{sample.ip, sample.sp, sample.fp, sample.lr};
  if (options_.machine == ElfMachine::kX64) {
    std::copy(std::begin(sample.general), std::end(sample.general), general_.begin());
    registers.general = general_.data();
  }
  UnwindRegisters before;  // of the frame below
  bool exact = true;
  FrameOrigin origin = FrameOrigin::kSampled;
  int signal_frames = 0;
  bool below_is_funclet = false, below_is_managed = false;
  uint64_t method_below = 0;
  while (true) {
    if (out.frames.size() >= options_.max_frames) {
      out.end = StackEnd::kTruncated;
      return;
    }
    const uint64_t lookup = exact ? registers.ip : registers.ip - 1;
    const CodeAt* found = &finder.At(lookup);
    // The runtime has bent the return address of a managed method: it is no caller, and the true one is not on the
    // stack.
    if (found->kind == CodeKind::kNative && (below_is_managed || found->no_call)) {
      if (finder.At(registers.ip).kind == CodeKind::kReturnTrap) {
        ++counters_.no_data;
        out.frames.back().doubt = FrameDoubt::kCallerMayBeMissing;
        const Step step = StepByChain(registers);
        if (step.kind != Step::Kind::kCaller) {
          ++counters_.lost;
          if (out.end != StackEnd::kTruncated) out.end = StackEnd::kBroken;
          return;
        }
        below_is_managed = below_is_funclet = false;
        origin = FrameOrigin::kFallback;
        registers = step.caller;
        continue;
      }
      found = &finder.At(lookup);
    }
    const CodeAt& code = *found;
    below_is_managed = code.kind == CodeKind::kManaged;
    if (!code.mapped && origin != FrameOrigin::kSampled) {
      ++counters_.no_code;
      UserFrame& last = out.frames.back();
      last.doubt = FrameDoubt::kCallerMayBeMissing;
      // What the data led to is no code; the chain may know better, once.
      Step step;
      if (origin != FrameOrigin::kFallback && origin != FrameOrigin::kChain) step = StepByChain(before);
      if (step.kind != Step::Kind::kCaller) {
        ++counters_.lost;
        out.end = out.end == StackEnd::kTruncated ? StackEnd::kTruncated : StackEnd::kBroken;
        return;
      }
      origin = FrameOrigin::kFallback;
      exact = false;
      registers = step.caller;
      continue;
    }
    // A funclet and the method that it is a part of are one frame; so are a method and the stub that resumed it.
    const uint64_t method = code.managed != nullptr ? code.managed->method_begin : 0;
    const bool is_part = below_is_funclet || (code.managed != nullptr && code.managed->resumption_stub);
    if (!(is_part && method != 0 && method == method_below))
      out.frames.push_back({registers.ip, lookup, origin, FrameDoubt::kNone});
    below_is_funclet = code.managed != nullptr && code.managed->funclet;
    method_below = method;
    ++counters_.by_origin[static_cast<size_t>(origin)];
    const Step step = StepByData(code, finder, registers, exact, origin == FrameOrigin::kFallback);
    out.frames.back().doubt = step.doubt;
    if (step.kind == Step::Kind::kOutermost) {
      // By a chain that was only the last resort, the end proves nothing.
      out.end = step.doubt == FrameDoubt::kNone ? StackEnd::kComplete : StackEnd::kBroken;
      return;
    }
    // A stack that does not grow would never end. Signal handlers may have one of their own, but only so many.
    const bool leaves_handler = step.exact && ++signal_frames <= kMaxSignalFrames;
    const bool grows = step.caller.sp > registers.sp || (step.caller.sp == registers.sp && exact) || leaves_handler;
    if (step.kind == Step::Kind::kFailed || !grows) {
      ++counters_.lost;
      if (step.kind != Step::Kind::kFailed) out.frames.back().doubt = FrameDoubt::kCallerMayBeMissing;
      if (out.end != StackEnd::kTruncated) out.end = StackEnd::kBroken;
      return;
    }
    before = registers;
    registers = step.caller;
    exact = step.exact;
    // What is lost stays lost until somebody has saved it.
    if (!before.fp_known && registers.fp == 0) registers.fp_known = false;
    origin = step.origin;
  }
}

}  // namespace clrsampler
