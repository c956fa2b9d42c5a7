// One instruction of x86-64: how long it is, where it leads, and what it does to the stack pointer and to rbp.
//
// By Intel's manual (Software Developer's Manual, volume 2, appendix A, "Opcode Map"), 64-bit mode. Known are all
// instructions of the maps without escape, 0F, 0F 38 and 0F 3A, and those of the VEX and EVEX encodings. An instruction
// that is undefined, or AMD's alone (XOP), is none.
#ifndef CLRSAMPLER_FORMATS_X64_INSTRUCTION_H_
#define CLRSAMPLER_FORMATS_X64_INSTRUCTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace clrsampler {

constexpr size_t kMaxX64InstructionBytes = 15;

struct X64Instruction {
  enum class Flow : uint8_t {
    kNext,          // to the instruction behind it
    kCall,          // direct, to `distance`; then to the one behind it
    kIndirectCall,  //
    kBranch,        // to `distance` or to the one behind it
    kJump,          // to `distance`
    kIndirectJump,  // by a register or by memory
    kReturn,
    kStop,  // none of these: it traps, or returns from an interrupt
  };
  enum class Stack : uint8_t {
    kSame,
    kAdd,     // sp += value
    kFromFp,  // sp = rbp + value
    kLeave,   // sp = rbp + 8, rbp = the word at rbp
    kOther,   // sp is something else
  };
  enum class Fp : uint8_t {
    kSame,
    kPushed,   // rbp was pushed: sp -= 8, the word there = rbp
    kPopped,   // rbp = the word at sp, sp += 8
    kFromSp,   // rbp = sp + value
    kStored,   // the word at sp + value = rbp
    kLoaded,   // rbp = the word at sp + value
    kCleared,  // rbp = 0, by xor: so the outermost frame is marked (psABI 3.4.1)
    kOther,    // rbp is something else
  };
  uint8_t bytes = 0;
  Flow flow = Flow::kNext;
  Stack stack = Stack::kSame;  // what a call, a return, kPushed and kPopped do is not told here
  Fp fp = Fp::kSame;
  // Adds a constant to sp, or to rbp as above; at most one of them has one.
  int32_t value = 0;
  int32_t distance = 0;  // from the instruction's end
  bool by_ip = false;    // an operand in memory lies relative to ip
  // The address of something relative to ip, from the instruction's end: `lea` only.
  std::optional<int32_t> address_taken;
};

// The instruction that `code` begins with. nullopt: it is none that is known, or is not there to its end.
std::optional<X64Instruction> DecodeX64(std::span<const std::byte> code);

// Whether `code` begins with an instruction that only fills space (nop, int3): its bytes, or 0.
size_t X64PaddingBytes(std::span<const std::byte> code);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_X64_INSTRUCTION_H_
