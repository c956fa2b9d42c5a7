#include "formats/x64/instruction.h"

#include "formats/x64/code_cursor.h"
#include "formats/x64/opcode_maps.h"
#include "formats/x64/vector_opcodes.h"

namespace clrsampler {
namespace {

using Flow = X64Instruction::Flow;
using Stack = X64Instruction::Stack;
using Fp = X64Instruction::Fp;
using Form = X64Form;

constexpr unsigned kRsp = 4, kRbp = 5;
constexpr unsigned kDirect = 3;  // mod: the operand is a register
constexpr uint8_t kOperandSize = 0x66, kAddressSize = 0x67;

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> code)
      : in_(code.first(code.size() < kMaxX64InstructionBytes ? code.size() : kMaxX64InstructionBytes)) {}

  std::optional<X64Instruction> Run() {
    Prefixes();
    const uint8_t opcode = Byte();
    if (in_.ok()) {
      if (opcode == 0x0f) {
        const uint8_t second = Byte();
        if (in_.ok()) Decode(kX64TwoByteMap[second], second);
      } else if (opcode == 0xc4 || opcode == 0xc5) {
        Vex(opcode == 0xc4);
      } else if (opcode == 0x62) {
        Evex();
      } else {
        Decode(kX64OneByteMap[opcode], opcode);
      }
    }
    if (!in_.ok()) return std::nullopt;
    if (skipped_immediate_ != 0) Skip(skipped_immediate_);
    if (!in_.ok()) return std::nullopt;
    out_.bytes = static_cast<uint8_t>(in_.at());
    out_.by_ip = ip_relative_;
    if (ip_relative_ && takes_address_) out_.address_taken = displacement_;
    return out_;
  }

 private:
  uint8_t Byte() { return in_.Byte(); }
  void Skip(size_t bytes) { in_.Skip(bytes); }
  void Unknown() { in_.Fail(); }

  void Prefixes() {
    for (; !in_.AtEnd(); in_.Advance()) {
      const uint8_t byte = in_.Peek();
      switch (byte) {
        case kOperandSize:
          word_ = true;
          continue;
        case kAddressSize:
          short_address_ = true;
          continue;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0x64:
        case 0x65:
          segment_ = byte >= 0x64;
          continue;
        case 0xf0:
          continue;
        case 0xf2:
        case 0xf3:
          repeat_ = byte;
          continue;
        default:
          break;
      }
      if ((byte & 0xf0) == 0x40) {
        rex_ = byte;
        has_rex_ = true;
        in_.Advance();
      }
      return;
    }
  }

  bool wide() const { return (rex_ & 8) != 0; }
  size_t ImmediateZ() const { return word_ && !wide() ? 2 : 4; }

  // ModRM with what follows: SIB and displacement.
  void ModRm() {
    const uint8_t byte = Byte();
    mod_ = byte >> 6;
    reg_ = (byte >> 3 & 7) | (rex_ & 4) << 1;
    rm_ = byte & 7;
    digit_ = byte >> 3 & 7;
    if (mod_ == kDirect) {
      rm_ |= (rex_ & 1) << 3;
      return;
    }
    bool displaced = mod_ == 2;
    bool indexed = false;
    if (rm_ == 4) {
      const uint8_t sib = Byte();
      indexed = ((sib >> 3 & 7) | (rex_ & 2) << 2) != 4;
      rm_ = sib & 7;
      if (rm_ == 5 && mod_ == 0) {
        displaced = true;
        no_base_ = true;
      }
    } else if (rm_ == 5 && mod_ == 0) {
      displaced = ip_relative_ = true;
    }
    rm_ |= (rex_ & 1) << 3;
    if (displaced) {
      displacement_ = in_.Signed<int32_t>();
    } else if (mod_ == 1) {
      displacement_ = in_.Signed<int8_t>();
    }
    simple_memory_ = !indexed && !no_base_ && !ip_relative_ && !short_address_ && !segment_;
  }
  bool IsMemoryAt(unsigned base) const { return mod_ != kDirect && simple_memory_ && rm_ == base; }
  bool IsRegister(unsigned number) const { return mod_ == kDirect && rm_ == number; }

  void WriteRegister(unsigned number) {
    if (number == kRsp) out_.stack = Stack::kOther;
    if (number == kRbp) out_.fp = Fp::kOther;
  }
  void Note(unsigned writes, unsigned third = 0) {
    const bool high_byte = (writes & kByte) != 0 && !has_rex_;
    if ((writes & kReg) != 0 && !(high_byte && reg_ >= 4)) WriteRegister(reg_);
    if ((writes & kRm) != 0 && mod_ == kDirect && !(high_byte && rm_ >= 4)) WriteRegister(rm_);
    if ((writes & kThird) != 0) WriteRegister(third);
  }
  void Operands(unsigned writes, size_t immediate = 0) {
    ModRm();
    Note(writes);
    skipped_immediate_ = immediate;
  }
  void Push() {
    if (word_) return static_cast<void>(out_.stack = Stack::kOther);
    out_.stack = Stack::kAdd;
    out_.value = -8;
  }
  void Pop() {
    if (word_) return static_cast<void>(out_.stack = Stack::kOther);
    out_.stack = Stack::kAdd;
    out_.value = 8;
  }
  template <typename T>
  void Jump(Flow flow) {
    out_.flow = flow;
    out_.distance = in_.Signed<T>();
  }

  // The parts that most instructions need come first.
  void Decode(X64Opcode entry, uint8_t opcode) {
    switch (entry.form) {
      case Form::kUnknown:
        return Unknown();
      case Form::kPlain:
        return;
      case Form::kImmediate8:
        return Skip(1);
      case Form::kImmediateZ:
        return Skip(ImmediateZ());
      case Form::kModRm:
        return Operands(entry.writes);
      case Form::kModRm8:
        return Operands(entry.writes, 1);
      case Form::kModRmZ:
        return Operands(entry.writes, ImmediateZ());
      default:
        break;
    }
    if (entry.form <= Form::kLastOfStack) return DecodeStack(entry.form, opcode);
    if (entry.form <= Form::kLastOfFlow) return DecodeFlow(entry.form);
    if (entry.form <= Form::kLastOfRegisters) return DecodeRegister(entry.form, opcode);
    DecodeGroup(entry.form, opcode);
  }

  // The low bits of some opcodes are a register.
  unsigned OpcodeRegister(uint8_t opcode) const { return (opcode & 7u) | (rex_ & 1u) << 3; }

  // Instructions that move the stack pointer.
  void DecodeStack(Form form, uint8_t opcode) {
    switch (form) {
      case Form::kPush:
        return Push();
      case Form::kPushImmediate8:
        Push();
        return Skip(1);
      case Form::kPushImmediateZ:
        Push();
        return Skip(ImmediateZ());
      case Form::kPushRegister:
        if (OpcodeRegister(opcode) == kRbp && !word_) return static_cast<void>(out_.fp = Fp::kPushed);
        return Push();
      case Form::kPop:
        return Pop();
      case Form::kPopRegister:
        if (OpcodeRegister(opcode) == kRbp && !word_) return static_cast<void>(out_.fp = Fp::kPopped);
        Pop();
        return WriteRegister(OpcodeRegister(opcode));
      case Form::kPopOperand:
        ModRm();
        if (digit_ != 0) return Unknown();
        Pop();
        // Such a pop takes an address that goes by sp as it is afterwards, which is of no interest here.
        return Note(kRm);
      case Form::kEnter:
        out_.stack = Stack::kOther;
        out_.fp = Fp::kOther;
        return Skip(3);
      case Form::kLeave:
        out_.stack = word_ ? Stack::kOther : Stack::kLeave;
        if (word_) out_.fp = Fp::kOther;
        return;
      default:
        return Unknown();
    }
  }

  // Instructions that may be followed by another one than the next.
  void DecodeFlow(Form form) {
    switch (form) {
      case Form::kBranch8:
        return Jump<int8_t>(Flow::kBranch);
      case Form::kBranch32:
        return Jump<int32_t>(Flow::kBranch);
      case Form::kJump8:
        return Jump<int8_t>(Flow::kJump);
      case Form::kJump32:
        return Jump<int32_t>(Flow::kJump);
      case Form::kCall:
        return Jump<int32_t>(Flow::kCall);
      case Form::kReturn:
        out_.flow = Flow::kReturn;
        return;
      case Form::kReturnAndPop:
        out_.flow = Flow::kReturn;
        out_.value = in_.Signed<int16_t>();
        if (out_.value != 0) out_.stack = Stack::kOther;  // takes arguments off, as nothing on Linux does
        return;
      case Form::kStop:
        out_.flow = Flow::kStop;
        return;
      case Form::kStop16:
        out_.flow = Flow::kStop;
        return Skip(2);
      case Form::kStopModRm:
        out_.flow = Flow::kStop;
        return Operands(kNothing);
      default:
        return Unknown();
    }
  }

  // Instructions whose opcode says which register they write, and those that may move between sp and rbp.
  void DecodeRegister(Form form, uint8_t opcode) {
    switch (form) {
      case Form::kExchange:
        if (opcode != 0x90 || (rex_ & 1) != 0) WriteRegister(OpcodeRegister(opcode));
        return;
      case Form::kMoveConstantByte:
        if (has_rex_ || OpcodeRegister(opcode) < 4) WriteRegister(OpcodeRegister(opcode));
        return Skip(1);
      case Form::kMoveConstant:
        WriteRegister(OpcodeRegister(opcode));
        return Skip(wide() ? 8 : ImmediateZ());
      case Form::kByteSwap:
        return WriteRegister(OpcodeRegister(opcode));
      case Form::kMoveOffset:
        return Skip(short_address_ ? 4 : 8);
      case Form::kMoveTo:
        return MoveTo();
      case Form::kMoveFrom:
        return MoveFrom();
      case Form::kLoadAddress:
        return LoadAddress();
      case Form::kExclusiveOrTo:
        return ExclusiveOr(true);
      case Form::kExclusiveOrFrom:
        return ExclusiveOr(false);
      default:
        return Unknown();
    }
  }

  // Instructions that ModRM or a prefix tells apart.
  void DecodeGroup(Form form, uint8_t opcode) {
    switch (form) {
      case Form::kGroup1Byte:
        ModRm();
        if (digit_ != 7) Note(kRm | kByte);
        return Skip(1);
      case Form::kGroup1:
        return Arithmetic(opcode == 0x83);
      case Form::kGroup3:
        return GroupThree(opcode == 0xf6);
      case Form::kGroup4:
        ModRm();
        if (digit_ > 1) return Unknown();
        return Note(kRm | kByte);
      case Form::kGroup5:
        return GroupFive();
      case Form::kGroup8:
        ModRm();
        if (digit_ > 4) Note(kRm);
        return Skip(1);
      case Form::kGroup11:
        ModRm();
        if (mod_ == kDirect && digit_ == 7) return Jump<int32_t>(Flow::kBranch);  // xbegin
        Note(kRm);
        return Skip(ImmediateZ());
      case Form::kGroup15:  // rdfsbase and rdgsbase
        return Operands(repeat_ == 0xf3 ? kRm : kNothing);
      case Form::kShadowStackOrNop:  // rdsspq is one of them; the others are nops
        return Operands(repeat_ != 0 ? kRm : kNothing);
      case Form::kMap38:
        return Operands(X64WritesOfMap38(Byte(), repeat_ != 0));
      case Form::kMap3a:
        return Operands(X64WritesOfMap3a(Byte()), 1);
      default:
        return Unknown();
    }
  }

  // add, or, adc, sbb, and, sub, xor, cmp with a constant.
  void Arithmetic(bool byte) {
    ModRm();
    const int32_t constant = byte                ? in_.Signed<int8_t>()
                             : ImmediateZ() == 2 ? in_.Signed<int16_t>()
                                                 : in_.Signed<int32_t>();
    if (digit_ == 7) return;
    const bool adds = digit_ == 0, subtracts = digit_ == 5;
    if (IsRegister(kRsp) && wide() && (adds || subtracts) && constant != INT32_MIN) {
      out_.stack = Stack::kAdd;
      out_.value = adds ? constant : -constant;
      return;
    }
    Note(kRm);
  }

  void ExclusiveOr(bool to_rm) {
    ModRm();
    if (reg_ == kRbp && IsRegister(kRbp) && !word_) return static_cast<void>(out_.fp = Fp::kCleared);
    Note(to_rm ? kRm : kReg);
  }

  void MoveTo() {
    ModRm();
    const bool whole = wide();
    if (whole && reg_ == kRsp && IsRegister(kRbp)) return static_cast<void>(out_.fp = Fp::kFromSp);
    if (whole && reg_ == kRbp && IsRegister(kRsp)) return static_cast<void>(out_.stack = Stack::kFromFp);
    if (whole && reg_ == kRbp && IsMemoryAt(kRsp)) {
      out_.fp = Fp::kStored;
      out_.value = displacement_;
      return;
    }
    Note(kRm);
  }

  void MoveFrom() {
    ModRm();
    const bool whole = wide();
    if (whole && reg_ == kRbp && IsRegister(kRsp)) return static_cast<void>(out_.fp = Fp::kFromSp);
    if (whole && reg_ == kRsp && IsRegister(kRbp)) return static_cast<void>(out_.stack = Stack::kFromFp);
    if (whole && reg_ == kRbp && IsMemoryAt(kRsp)) {
      out_.fp = Fp::kLoaded;
      out_.value = displacement_;
      return;
    }
    Note(kReg);
  }

  void LoadAddress() {
    ModRm();
    if (mod_ == kDirect) return Unknown();
    takes_address_ = true;
    // A segment means nothing to it.
    const bool whole = wide();
    if (whole && reg_ == kRsp && (IsMemoryAt(kRsp) || IsMemoryAt(kRbp))) {
      out_.stack = rm_ == kRsp ? Stack::kAdd : Stack::kFromFp;
      out_.value = displacement_;
      return;
    }
    if (whole && reg_ == kRbp && IsMemoryAt(kRsp)) {
      out_.fp = Fp::kFromSp;
      out_.value = displacement_;
      return;
    }
    Note(kReg);
  }

  void GroupFive() {
    ModRm();
    switch (digit_) {
      case 0:
      case 1:
        return Note(kRm);
      case 2:
      case 3:
        out_.flow = Flow::kIndirectCall;
        return;
      case 4:
      case 5:
        out_.flow = Flow::kIndirectJump;
        return;
      case 6:
        return Push();
      default:
        return Unknown();
    }
  }

  // not, neg, mul and div; test has a constant.
  void GroupThree(bool byte) {
    ModRm();
    const bool tests = digit_ < 2;
    if (digit_ == 2 || digit_ == 3) Note(kRm | (byte ? kByte : 0));
    if (tests) Skip(byte ? 1 : ImmediateZ());
  }

  void Vex(bool long_form) {
    const uint8_t first = Byte();
    uint8_t map = 1, second = first;
    rex_ = static_cast<uint8_t>((~first & 0x80) >> 5);  // R
    if (long_form) {
      map = first & 0x1f;
      rex_ |= static_cast<uint8_t>((~first & 0x40) >> 5 | (~first & 0x20) >> 5);  // X, B
      second = Byte();
      rex_ |= static_cast<uint8_t>((second & 0x80) >> 4);  // W
    }
    Vector(map, second & 3, ~(second >> 3) & 15, false);
  }

  void Evex() {
    const uint8_t first = Byte(), second = Byte();
    Byte();
    rex_ =
        static_cast<uint8_t>((~first & 0x80) >> 5 | (~first & 0x40) >> 5 | (~first & 0x20) >> 5 | (second & 0x80) >> 4);
    Vector(first & 7, second & 3, ~(second >> 3) & 15, true);
  }

  void Vector(unsigned map, unsigned prefix, unsigned third, bool evex) {
    const uint8_t opcode = Byte();
    has_rex_ = true;
    const X64Opcode entry = X64VectorOpcode({map, prefix, opcode, evex});
    if (entry.form == Form::kUnknown) return Unknown();
    if (entry.form == Form::kPlain) return;
    ModRm();
    Note(entry.writes, third);
    if (entry.form == Form::kModRm8) Skip(1);
  }

  X64CodeCursor in_;
  X64Instruction out_;

  bool word_ = false, short_address_ = false, segment_ = false, has_rex_ = false;
  uint8_t repeat_ = 0;
  uint8_t rex_ = 0;
  unsigned mod_ = 0, reg_ = 0, rm_ = 0, digit_ = 0;
  int32_t displacement_ = 0;
  bool ip_relative_ = false, no_base_ = false, simple_memory_ = false, takes_address_ = false;
  size_t skipped_immediate_ = 0;
};

}  // namespace

std::optional<X64Instruction> DecodeX64(std::span<const std::byte> code) { return Decoder(code).Run(); }

size_t X64PaddingBytes(std::span<const std::byte> code) {
  size_t prefixes = 0;
  while (prefixes < code.size() && (code[prefixes] == std::byte{0x66} || code[prefixes] == std::byte{0x2e})) ++prefixes;
  const auto rest = code.subspan(prefixes);
  const bool one = !rest.empty() && (rest[0] == std::byte{0x90} || rest[0] == std::byte{0xcc});
  const bool longer = rest.size() > 2 && rest[0] == std::byte{0x0f} && rest[1] == std::byte{0x1f};
  if (!one && !longer) return 0;
  const auto instruction = DecodeX64(code);
  return instruction ? instruction->bytes : 0;
}

}  // namespace clrsampler
