#include "formats/unwind/arm64_code.h"

#include <algorithm>
#include <optional>

#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr uint32_t kX29 = 29, kX30 = 30, kSp = 31;
constexpr int64_t kArm64InstructionBytes = 4;
constexpr int kMaxBefore = 16;  // longer than prologues and epilogues
constexpr int kMaxFrom = kArm64BytesFrom / kArm64InstructionBytes;
// No frame is larger: the JIT probes pages one by one, and a stack has 8 MiB.
constexpr int64_t kMaxAllocation = 8 << 20;

int64_t SignExtended(uint32_t value, int bits) {
  const uint32_t sign = 1u << (bits - 1);
  return static_cast<int64_t>(value & (2 * sign - 1)) - (value & sign ? int64_t{2} * sign : 0);
}

// One instruction (Arm ARM, "A64 instruction set encoding").
class Instruction {
 public:
  explicit Instruction(uint32_t bits) : bits_(bits) {}

  uint32_t rd() const { return bits_ & 31; }
  uint32_t rn() const { return bits_ >> 5 & 31; }
  uint32_t rt2() const { return bits_ >> 10 & 31; }

  bool IsRet() const { return Is(0xFFFFFC1F, 0xD65F0000) || Is(0xFFFFFBFF, 0xD65F0BFF); }  // retaa, retab
  bool IsJumpToRegister() const { return Is(0xFFFFFC1F, 0xD61F0000); }
  // ret, br, blr and their authenticating forms, eret.
  bool IsBranchToRegister() const { return Is(0xFE000000, 0xD6000000); }
  bool IsJump() const { return Is(0xFC000000, 0x14000000); }
  bool IsCall() const { return Is(0xFC000000, 0x94000000) || Is(0xFFFFFC1F, 0xD63F0000); }
  bool IsConditional() const {
    return Is(0xFF000000, 0x54000000) || Is(0x7E000000, 0x34000000) || Is(0x7E000000, 0x36000000);
  }
  bool IsTrap() const { return bits_ < 0x10000 || Is(0xFFE0001F, 0xD4200000) || Is(0xFFE0001F, 0xD4400000); }
  bool EndsStraightLine() const { return IsBranchToRegister() || IsJump() || IsCall() || IsTrap(); }
  int64_t JumpBytes() const { return SignExtended(bits_, 26) * kArm64InstructionBytes; }

  // add x29, sp, #N (which mov x29, sp is one of) and add x29, sp, xN.
  bool SetsFramePointer() const {
    return rd() == kX29 && rn() == kSp && (Is(0xFF800000, 0x91000000) || Is(0xFFE00000, 0x8B200000));
  }
  bool MovesToLinkRegister() const { return rd() == kX30 && Is(0xFFE0FFE0, 0xAA0003E0); }  // mov x30, xN
  bool IsLoadOrStore() const { return Is(0x0A000000, 0x08000000); }
  bool IsLiteralLoad() const { return Is(0x3B000000, 0x18000000); }
  bool IsLoad() const { return IsLoadOrStore() && (IsLiteralLoad() || Is(0x00400000, 0x00400000)); }
  bool IsPair() const { return Is(0x3A000000, 0x28000000); }
  bool IsVector() const { return Is(0x04000000, 0x04000000); }
  bool Loads(uint32_t reg) const { return IsLoad() && !IsVector() && (rd() == reg || (IsPair() && rt2() == reg)); }

  // mov sp, x29 and the like: a frame is left, and its record is in place.
  bool TakesSpFromFrame() const { return rd() == kSp && rn() == kX29 && Is(0xBF800000, 0x91000000); }

  // By how much sp moves; nullopt: by the value of a register, or to that of one.
  std::optional<int64_t> MovesSp() const {
    if (IsLoadOrStore() && rn() == kSp) {
      if (IsPair() && Is(0x00800000, 0x00800000)) {  // pre- or post-indexed
        const int scale = IsVector() ? 2 + static_cast<int>(bits_ >> 30) : 2 + static_cast<int>(bits_ >> 31);
        return SignExtended(bits_ >> 15, 7) * (int64_t{1} << scale);
      }
      // One register, pre- or post-indexed.
      if (!IsPair() && Is(0x3B200400, 0x38000400)) return SignExtended(bits_ >> 12, 9);
      return 0;
    }
    if (rd() != kSp) return 0;
    if (Is(0xBF800000, 0x91000000)) {  // add, sub sp, Rn, #N
      if (rn() != kSp) return std::nullopt;
      const int64_t bytes = static_cast<int64_t>(bits_ >> 10 & 0xFFF) << (bits_ & 1u << 22 ? 12 : 0);
      return bits_ & 1u << 30 ? -bytes : bytes;
    }
    if (Is(0xBFE00000, 0x8B200000)) return std::nullopt;  // add, sub sp, Rn, Rm
    return 0;                                             // of others 31 is the zero register
  }
  bool Stores() const { return IsLoadOrStore() && !IsLoad() && rn() == kSp; }

 private:
  bool Is(uint32_t mask, uint32_t value) const { return (bits_ & mask) == value; }
  uint32_t bits_;
};

class Code {
 public:
  explicit Code(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::optional<Instruction> At(int64_t offset) const {
    if (offset < 0) return std::nullopt;
    const std::optional<uint32_t> bits = LoadAt<uint32_t>(bytes_, static_cast<size_t>(offset));
    return bits ? std::optional<Instruction>(*bits) : std::nullopt;
  }

 private:
  std::span<const std::byte> bytes_;
};

// Whether the registers were taken back already: all that follows in a straight line is the epilogue's rest.
bool IsBehindRestore(const Code& code, int64_t at) {
  for (int i = 1; i <= kMaxBefore; ++i) {
    const std::optional<Instruction> before = code.At(at - i * kArm64InstructionBytes);
    if (!before || before->EndsStraightLine() || before->IsConditional()) return false;
    if (before->Loads(kX30)) return true;
  }
  return false;
}

// How far a prologue has moved sp before the instruction at `at`.
int64_t MovedByPrologue(const Code& code, int64_t at) {
  int64_t moved = 0;
  for (int i = 1; i <= kMaxBefore; ++i) {
    const std::optional<Instruction> before = code.At(at - i * kArm64InstructionBytes);
    if (!before) break;
    const std::optional<int64_t> step = before->MovesSp();
    // This is a store, or sub sp. A load, or anything else, is not part of this prologue.
    if (!step || *step > 0 || (*step == 0 && !before->Stores())) break;
    moved -= *step;
  }
  return moved;
}

// Whether the jump through `reg` at `at` goes where a pointer in memory says, as stubs do. Those of a switch are
// computed.
bool JumpsToLoaded(const Code& code, int64_t at, uint32_t reg) {
  for (int i = 1; i <= kMaxBefore; ++i) {
    const std::optional<Instruction> before = code.At(at - i * kArm64InstructionBytes);
    if (!before || before->EndsStraightLine()) return false;
    if (before->Loads(reg)) return true;
    if (!before->IsLoadOrStore() && !before->IsConditional() && before->rd() == reg) return false;
  }
  return false;
}

}  // namespace

Arm64Leaf DecodeArm64Leaf(std::span<const std::byte> bytes, size_t offset) {
  const Code code(bytes);
  const Arm64Leaf record{Arm64Return::kFrameRecord};
  if (offset > bytes.size() || offset % kArm64InstructionBytes != 0) return {};
  int64_t at = static_cast<int64_t>(offset);
  const bool restored = IsBehindRestore(code, at);
  bool jumped = false;
  int64_t moved = 0;  // sp, from here to the instruction looked at
  const auto in_link_register = [&](int64_t above) {
    if (above < 0 || above > kMaxAllocation) return Arm64Leaf{};
    return Arm64Leaf{Arm64Return::kLinkRegister, static_cast<uint32_t>(above)};
  };
  for (int i = 0; i < kMaxFrom; ++i) {
    const std::optional<Instruction> next = code.At(at);
    if (!next && restored) return in_link_register(moved);
    if (!next) return jumped ? record : Arm64Leaf{};
    if (next->Loads(kX30) || next->MovesToLinkRegister()) return record;
    if (next->SetsFramePointer()) return in_link_register(MovedByPrologue(code, static_cast<int64_t>(offset)));
    if (next->IsRet()) return in_link_register(moved);
    if (next->IsJumpToRegister()) {
      return restored || JumpsToLoaded(code, at, next->rn()) ? in_link_register(moved) : record;
    }
    if (next->IsCall() || next->IsTrap() || next->IsBranchToRegister()) return record;
    if (next->IsJump()) {
      if (restored) return in_link_register(moved);
      // A branch that leaves the bytes goes far within a method. Stubs jump by pointers.
      at += next->JumpBytes();
      jumped = true;
      continue;
    }
    if (next->TakesSpFromFrame()) return record;
    moved += next->MovesSp().value_or(0);
    at += kArm64InstructionBytes;
  }
  return record;
}

bool IsArm64Call(uint32_t instruction) {
  return (instruction & 0xFC000000) == 0x94000000 || (instruction & 0xFEFF0000) == 0xD63F0000;
}

}  // namespace clrsampler
