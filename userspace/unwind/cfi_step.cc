#include "unwind/cfi_step.h"

#include <signal.h>
#include <ucontext.h>

#include <cstddef>
#include <optional>

#include "clrsampler/wire.h"

namespace clrsampler {
namespace {

constexpr uint64_t kWord = 8;
// arm64: the bits that pointer authentication puts into the upper part of a return address.
constexpr uint64_t kArm64AddressMask = (uint64_t{1} << 48) - 1;

// The place where the kernel keeps the registers of the interrupted code, from sp in the code that the handler returns
// to.
struct SignalContext {
  uint64_t fp, sp, ip;
  std::optional<uint64_t> lr;
};

// struct rt_sigframe (Linux: arch/x86/include/asm/sigframe.h): a return address, which the handler's `ret` has taken
// off, and the ucontext.
constexpr SignalContext kX64Context{120, 160, 168, std::nullopt};
// arch/arm64/kernel/signal.c: 128 bytes of siginfo, the ucontext, in it x0 to x30, sp and pc.
constexpr uint64_t kArm64SigInfo = 128, kArm64X0 = kArm64SigInfo + 184;
constexpr SignalContext kArm64Context{kArm64X0 + 29 * kWord, kArm64X0 + 31 * kWord, kArm64X0 + 32 * kWord,
                                      kArm64X0 + 30 * kWord};

#if defined(__x86_64__)
static_assert(offsetof(ucontext_t, uc_mcontext.gregs) + REG_RBP * kWord == kX64Context.fp);
static_assert(offsetof(ucontext_t, uc_mcontext.gregs) + REG_RSP * kWord == kX64Context.sp);
static_assert(offsetof(ucontext_t, uc_mcontext.gregs) + REG_RIP * kWord == kX64Context.ip);
#elif defined(__aarch64__)
static_assert(sizeof(siginfo_t) == kArm64SigInfo);
static_assert(kArm64SigInfo + offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, regs) == kArm64X0);
static_assert(kArm64SigInfo + offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, sp) == kArm64Context.sp);
static_assert(kArm64SigInfo + offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, pc) == kArm64Context.ip);
#endif

CfiStepResult Ended(CfiStepOutcome outcome) {
  CfiStepResult result;
  result.outcome = outcome;
  return result;
}

CfiStepResult Missing(uint64_t address) {
  CfiStepResult result = Ended(CfiStepOutcome::kMissingWord);
  result.missing = address;
  return result;
}

// Sums of an address and an offset wrap around to nonsense that is not shipped, or not above sp.
uint64_t Plus(uint64_t address, int64_t offset) { return address + static_cast<uint64_t>(offset); }

CfiStepResult StepOutOfSignal(const UnwindRegisters& registers, const StackMemory& stack, ElfMachine machine) {
  const SignalContext& context = machine == ElfMachine::kX64 ? kX64Context : kArm64Context;
  CfiStepResult result = Ended(CfiStepOutcome::kCaller);
  result.interrupted = true;
  const auto read = [&](uint64_t offset, uint64_t& value) {
    const std::optional<uint64_t> word = stack.Word(registers.sp + offset);
    if (!word && result.outcome == CfiStepOutcome::kCaller) {
      result.outcome = CfiStepOutcome::kMissingWord;
      result.missing = registers.sp + offset;
    }
    value = word.value_or(0);
  };
  read(context.ip, result.caller.ip);
  read(context.sp, result.caller.sp);
  read(context.fp, result.caller.fp);
  if (context.lr) read(*context.lr, result.caller.lr);
  if (result.outcome != CfiStepOutcome::kCaller) return Missing(result.missing);
  // Interrupted code may have any value in sp, but then there is nothing to be read there.
  if (result.caller.ip == 0 || result.caller.sp % kWord != 0) return Ended(CfiStepOutcome::kContradiction);
  return result;
}

// nullopt: `failure` says why.
std::optional<uint64_t> FrameAddress(const CfiRow& row, const UnwindRegisters& registers, const StackMemory& stack,
                                     CfiStepResult& failure) {
  std::optional<uint64_t> slot;
  uint64_t above = 0;
  if (!registers.sp_exact && row.cfa != CfaRule::kFpOffset && row.cfa != CfaRule::kFpDeref) {
    // Compiled code lets x29 point to where the caller's was saved. So the frame is known all the same.
    if (row.cfa == CfaRule::kSpOffset && row.fp == RegisterRule::kAtCfaOffset && registers.fp != 0) {
      return Plus(registers.fp, -int64_t{row.fp_offset});
    }
    failure = Ended(CfiStepOutcome::kUnsupported);
    return std::nullopt;
  }
  switch (row.cfa) {
    case CfaRule::kUnsupported:
      failure = Ended(CfiStepOutcome::kUnsupported);
      return std::nullopt;
    case CfaRule::kRegister:
    case CfaRule::kSpIndexed:
      if (registers.general == nullptr || row.cfa_register >= WIRE_GENERAL_REGISTERS) {
        failure = Ended(CfiStepOutcome::kUnsupported);
        return std::nullopt;
      }
      if (row.cfa == CfaRule::kRegister) return Plus(registers.general[row.cfa_register], row.cfa_offset);
      slot = Plus(registers.sp, row.cfa_offset) + kWord * registers.general[row.cfa_register];
      above = kWord;
      break;
    case CfaRule::kSpOffset:
      return Plus(registers.sp, row.cfa_offset);
    case CfaRule::kFpOffset:
      return Plus(registers.fp, row.cfa_offset);
    case CfaRule::kPlt:
      return registers.sp + kWord + ((registers.ip & 15) >= static_cast<uint64_t>(row.cfa_offset) ? kWord : 0);
    case CfaRule::kFpDeref:
      slot = Plus(registers.fp, row.cfa_offset);
      break;
    case CfaRule::kSpDeref:
      slot = Plus(registers.sp, row.cfa_offset);
      above = kWord;
      break;
  }
  const std::optional<uint64_t> word = slot ? stack.Word(*slot) : std::nullopt;
  if (!word) {
    failure = Missing(slot.value_or(0));
    return std::nullopt;
  }
  return *word + above;
}

}  // namespace

CfiStepResult CfiStep(const CfiRow& row, bool leaf, const UnwindRegisters& registers, const StackMemory& stack,
                      ElfMachine machine) {
  if (row.signal_frame) {
    return registers.sp_exact ? StepOutOfSignal(registers, stack, machine) : Ended(CfiStepOutcome::kUnsupported);
  }
  if (row.ra == RegisterRule::kUndefined) return Ended(CfiStepOutcome::kOutermost);
  if (row.ra == RegisterRule::kUnsupported) return Ended(CfiStepOutcome::kUnsupported);
  CfiStepResult result;
  const std::optional<uint64_t> frame = FrameAddress(row, registers, stack, result);
  if (!frame) return result;
  const bool by_link_register = row.ra == RegisterRule::kSame && machine == ElfMachine::kArm64;
  const bool in_register = row.ra == RegisterRule::kInRegister && registers.general != nullptr &&
                           static_cast<uint32_t>(row.ra_offset) < WIRE_GENERAL_REGISTERS;
  // A frame that has called saved its return address somewhere; only a leaf on arm64 may have used no stack at all.
  if (*frame % kWord != 0 || *frame < registers.sp ||
      (*frame == registers.sp && !(leaf && (by_link_register || in_register)))) {
    return Ended(CfiStepOutcome::kContradiction);
  }
  result.caller.sp = *frame;

  if (row.ra == RegisterRule::kAtCfaOffset) {
    const uint64_t slot = Plus(*frame, row.ra_offset);
    const std::optional<uint64_t> word = stack.Word(slot);
    if (!word) return Missing(slot);
    result.caller.ip = *word;
  } else if (in_register) {
    result.caller.ip = registers.general[row.ra_offset];
  } else if (by_link_register) {
    if (!leaf) return Ended(CfiStepOutcome::kContradiction);
    result.caller.ip = registers.lr;
  } else {
    return Ended(CfiStepOutcome::kUnsupported);
  }
  if (machine == ElfMachine::kArm64) result.caller.ip &= kArm64AddressMask;
  if (result.caller.ip == 0) return Ended(CfiStepOutcome::kContradiction);

  std::optional<uint64_t> fp;
  if (row.fp == RegisterRule::kSame) fp = registers.fp;
  if (row.fp == RegisterRule::kAtCfaOffset) {
    const uint64_t slot = Plus(*frame, row.fp_offset);
    // Clang does not say that an epilogue has taken the register back. Its slot is below the stack pointer then.
    fp = leaf && slot < registers.sp ? registers.fp : stack.Word(slot);
  }
  if (row.fp == RegisterRule::kAtFpOffset) fp = stack.Word(Plus(registers.fp, row.fp_offset));
  result.caller.fp = fp.value_or(0);
  result.fp_known = result.caller.fp_known = fp.has_value();
  result.outcome = CfiStepOutcome::kCaller;
  return result;
}

}  // namespace clrsampler
