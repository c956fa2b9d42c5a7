#include "unwind/managed_step.h"

#include <optional>

#include "formats/unwind/x64_code.h"

namespace clrsampler {
namespace {

// mov rbp, [rdi+n]; mov [rsp+n], rbp; lea rbp, [rbp+n], each in its longest form.
constexpr uint64_t kTakesParentsFrame = 22;

class Step {
 public:
  Step(const ManagedFunction& function, bool leaf, const UnwindRegisters& registers, const StackMemory& stack)
      : function_(function), leaf_(leaf), registers_(registers), stack_(stack) {}

  ManagedStepResult Take() {
    // A return address may be the first byte behind the function: calls that never return end it.
    const uint64_t address = leaf_ ? registers_.ip : registers_.ip - 1;
    if (address < function_.begin || address >= function_.end) return result_;
    offset_ = address - function_.begin;
    if (function_.funclet) return OutOfFunclet();
    if (leaf_ && offset_ > 0) {
      const Epilogue epilogue = Follow();
      if (epilogue.kind != Epilogue::Kind::kNone) return Leave(epilogue);
    }
    return ByCodes();
  }

 private:
  Epilogue Follow() const {
    return FollowEpilogue(function_.code, function_.end - function_.begin, offset_, registers_.sp, registers_.fp,
                          [this](uint64_t at) { return stack_.Word(at); });
  }

  ManagedStepResult OutOfFunclet() {
    bool has_frame = false;  // 8 and 9
    for (const UnwindCode& code : function_.unwind.codes) {
      has_frame |= code.op == UnwindOp::kPush && code.reg == kUnwindRbp;
    }
    if (!leaf_ || !has_frame) return ByParentsFrame();
    const uint64_t ready =
        FuncletFrameReady(function_.code).value_or(function_.unwind.prologue_bytes + kTakesParentsFrame);
    if (offset_ < ready) return ByCodes();
    const Epilogue epilogue = Follow();
    // Until the pop rbp is still the parent's.
    if (epilogue.kind == Epilogue::Kind::kNone || epilogue.pops_rbp) return ByParentsFrame();
    return Leave(epilogue);
  }

  ManagedStepResult ByParentsFrame() {
    result_.how = ManagedStepHow::kFunclet;
    uint64_t slot = registers_.fp;
    if (function_.osr) slot += 8 + uint64_t{function_.osr_frame_bytes};
    UnwindRegisters caller;
    caller.fp = Word(slot);
    caller.ip = Word(slot + 8);
    caller.sp = slot + 16;
    return Finish(caller);
  }

  ManagedStepResult Leave(const Epilogue& epilogue) {
    result_.how = ManagedStepHow::kEpilogue;
    if (epilogue.kind == Epilogue::Kind::kMissingWord) missing_ = epilogue.missing;
    UnwindRegisters caller;
    caller.ip = epilogue.ip;
    caller.sp = epilogue.sp;
    caller.fp = epilogue.rbp;
    return Finish(caller);
  }

  ManagedStepResult ByCodes() {
    // A frame of a page or more is probed before it is allocated. The prologue calls a helper for that, and has done
    // what stands before the call.
    const uint64_t done = leaf_ ? offset_ : offset_ + 1;
    const bool in_prologue = done < function_.unwind.prologue_bytes;
    result_.how = in_prologue ? ManagedStepHow::kPrologue : ManagedStepHow::kBody;
    UnwindRegisters caller;
    caller.fp = registers_.fp;
    uint64_t sp = registers_.sp;
    uint64_t own_bytes = 0;  // of an OSR method's own frame
    uint64_t base = sp;      // where sp is after the prologue
    std::optional<uint64_t> slot;
    bool sp_moves = false;
    for (const UnwindCode& code : function_.unwind.codes) {
      if (in_prologue && code.prologue_offset > done) continue;
      switch (code.op) {
        case UnwindOp::kPush:
          if (code.reg == kUnwindRbp) {
            slot = sp;
            caller.fp = Word(sp);
          }
          sp += 8;
          if (code.prologue_offset > 0) own_bytes += 8;
          break;
        case UnwindOp::kAlloc:
          sp += code.value;
          if (code.prologue_offset > 0 && !(function_.osr && IsReturnSlotOfPatchpoint(code))) own_bytes += code.value;
          break;
        case UnwindOp::kSetFrame:
          if (code.reg != kUnwindRbp) return result_;
          sp = base = registers_.fp - code.value;
          sp_moves = true;
          break;
        case UnwindOp::kSave:
          if (code.reg == kUnwindRbp) caller.fp = Word(base + code.value);
          break;
      }
    }
    if (!leaf_ && !in_prologue && !sp_moves && slot) {
      // rbp points to the place where it was saved. In OSR methods it points to a copy, the first word that they put on
      // the stack.
      const uint64_t expected = function_.osr ? registers_.sp + own_bytes - 8 : *slot;
      result_.check = expected == registers_.fp ? ManagedStepCheck::kAgreed : ManagedStepCheck::kContradicted;
    }
    caller.ip = Word(sp);
    caller.sp = sp + 8;
    if (base < registers_.sp) return result_;
    return Finish(caller);
  }

  uint64_t Word(uint64_t address) {
    const std::optional<uint64_t> word = stack_.Word(address);
    if (!word && !missing_) missing_ = address;
    return word.value_or(0);
  }

  ManagedStepResult Finish(const UnwindRegisters& caller) {
    if (caller.sp <= registers_.sp) return result_;
    if (missing_) {
      result_.kind = ManagedStepResult::Kind::kMissingWord;
      result_.missing = *missing_;
      return result_;
    }
    result_.kind = ManagedStepResult::Kind::kStepped;
    result_.caller = caller;
    return result_;
  }

  const ManagedFunction& function_;
  const bool leaf_;
  const UnwindRegisters& registers_;
  const StackMemory& stack_;
  uint64_t offset_ = 0;
  std::optional<uint64_t> missing_;
  ManagedStepResult result_;
};

}  // namespace

ManagedStepResult ManagedStep(const ManagedFunction& function, bool leaf, const UnwindRegisters& registers,
                              const StackMemory& stack) {
  return Step(function, leaf, registers, stack).Take();
}

}  // namespace clrsampler
