#include "formats/x64/instruction.h"

#include <cstring>

namespace clrsampler {
namespace {

using Flow = X64Instruction::Flow;
using Stack = X64Instruction::Stack;
using Fp = X64Instruction::Fp;

constexpr unsigned kRsp = 4, kRbp = 5;
constexpr unsigned kDirect = 3;  // mod: the operand is a register
constexpr uint8_t kOperandSize = 0x66, kAddressSize = 0x67;

// Which general registers an instruction writes, as its operands are encoded.
enum Writes : uint8_t {
  kNothing = 0,
  kReg = 1,    // the register of ModRM.reg
  kRm = 2,     // that of ModRM.rm, if it is one
  kByte = 4,   // of a byte: 4 to 7 are ah to bh without a REX prefix
  kThird = 8,  // that of VEX.vvvv
};

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> code)
      : code_(code.first(code.size() < kMaxX64InstructionBytes ? code.size() : kMaxX64InstructionBytes)) {}

  std::optional<X64Instruction> Run() {
    Prefixes();
    const uint8_t opcode = Byte();
    if (ok_) {
      if (opcode == 0x0f) {
        TwoBytes();
      } else if (opcode == 0xc4 || opcode == 0xc5) {
        Vex(opcode == 0xc4);
      } else if (opcode == 0x62) {
        Evex();
      } else {
        OneByte(opcode);
      }
    }
    if (!ok_) return std::nullopt;
    if (skipped_immediate_ != 0) Skip(skipped_immediate_);
    if (!ok_) return std::nullopt;
    out_.bytes = static_cast<uint8_t>(at_);
    out_.by_ip = ip_relative_;
    if (ip_relative_ && takes_address_) out_.address_taken = displacement_;
    return out_;
  }

 private:
  uint8_t Byte() {
    if (at_ >= code_.size()) {
      ok_ = false;
      return 0;
    }
    return static_cast<uint8_t>(code_[at_++]);
  }
  void Skip(size_t bytes) {
    if (code_.size() - at_ < bytes) {
      ok_ = false;
      return;
    }
    at_ += bytes;
  }
  template <typename T>
  int32_t Signed() {
    T value = 0;
    if (code_.size() - at_ < sizeof value) {
      ok_ = false;
      return 0;
    }
    std::memcpy(&value, code_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  void Unknown() { ok_ = false; }

  void Prefixes() {
    for (; at_ < code_.size(); ++at_) {
      const uint8_t byte = static_cast<uint8_t>(code_[at_]);
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
        ++at_;
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
      displacement_ = Signed<int32_t>();
    } else if (mod_ == 1) {
      displacement_ = Signed<int8_t>();
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
    out_.distance = Signed<T>();
  }

  void OneByte(uint8_t opcode) {
    if (opcode < 0x40) {
      const bool compares = opcode >= 0x38;
      if (opcode == 0x31 || opcode == 0x33) return ExclusiveOr(opcode == 0x31);
      switch (opcode & 7) {
        case 0:
          return Operands(compares ? kNothing : kRm | kByte);
        case 1:
          return Operands(compares ? kNothing : kRm);
        case 2:
          return Operands(compares ? kNothing : kReg | kByte);
        case 3:
          return Operands(compares ? kNothing : kReg);
        case 4:
          return Skip(1);
        case 5:
          return Skip(ImmediateZ());
        default:
          return Unknown();
      }
    }
    const unsigned low = (opcode & 7u) | (rex_ & 1u) << 3;
    switch (opcode & 0xf8) {
      case 0x50:
        if (low == kRbp && !word_) return static_cast<void>(out_.fp = Fp::kPushed);
        return Push();
      case 0x58:
        if (low == kRbp && !word_) return static_cast<void>(out_.fp = Fp::kPopped);
        Pop();
        return WriteRegister(low);
      case 0x70:
      case 0x78:
        return Jump<int8_t>(Flow::kBranch);
      case 0x90:
        if (opcode != 0x90 || (rex_ & 1) != 0) WriteRegister(low);
        return;
      case 0xb0:
        if (has_rex_ || low < 4) WriteRegister(low);
        return Skip(1);
      case 0xb8:
        WriteRegister(low);
        return Skip(wide() ? 8 : ImmediateZ());
      case 0xd8:  // x87
        return Operands(kNothing);
      default:
        break;
    }
    switch (opcode) {
      case 0x63:
        return Operands(kReg);
      case 0x68:
        Push();
        return Skip(ImmediateZ());
      case 0x69:
        return Operands(kReg, ImmediateZ());
      case 0x6a:
        Push();
        return Skip(1);
      case 0x6b:
        return Operands(kReg, 1);
      case 0x6c:
      case 0x6d:
      case 0x6e:
      case 0x6f:
        return;
      case 0x80:
        ModRm();
        if (digit_ != 7) Note(kRm | kByte);
        return Skip(1);
      case 0x81:
      case 0x83:
        return Arithmetic(opcode == 0x83);
      case 0x84:
      case 0x85:
        return Operands(kNothing);
      case 0x86:
        return Operands(kReg | kRm | kByte);
      case 0x87:
        return Operands(kReg | kRm);
      case 0x88:
        return Operands(kRm | kByte);
      case 0x89:
        return MoveTo();
      case 0x8a:
        return Operands(kReg | kByte);
      case 0x8b:
        return MoveFrom();
      case 0x8c:
        return Operands(kRm);
      case 0x8d:
        return LoadAddress();
      case 0x8e:
        return Operands(kNothing);
      case 0x8f:
        ModRm();
        if (digit_ != 0) return Unknown();
        Pop();
        // Such a pop takes an address that goes by sp as it is afterwards, which is of no interest here.
        return Note(kRm);
      case 0x98:
      case 0x99:
      case 0x9b:
      case 0x9e:
      case 0x9f:
        return;
      case 0x9c:
        return Push();
      case 0x9d:
        return Pop();
      case 0xa0:
      case 0xa1:
      case 0xa2:
      case 0xa3:
        return Skip(short_address_ ? 4 : 8);
      case 0xa4:
      case 0xa5:
      case 0xa6:
      case 0xa7:
      case 0xaa:
      case 0xab:
      case 0xac:
      case 0xad:
      case 0xae:
      case 0xaf:
        return;
      case 0xa8:
        return Skip(1);
      case 0xa9:
        return Skip(ImmediateZ());
      case 0xc0:
        return Operands(kRm | kByte, 1);
      case 0xc1:
        return Operands(kRm, 1);
      case 0xc2:
        out_.flow = Flow::kReturn;
        out_.value = Signed<int16_t>();
        if (out_.value != 0) out_.stack = Stack::kOther;  // takes arguments off, as nothing on Linux does
        return;
      case 0xc3:
        out_.flow = Flow::kReturn;
        return;
      case 0xc6:
        return Operands(kRm | kByte, 1);
      case 0xc7:
        ModRm();
        if (mod_ == kDirect && digit_ == 7) return Jump<int32_t>(Flow::kBranch);  // xbegin
        Note(kRm);
        return Skip(ImmediateZ());
      case 0xc8:  // enter
        out_.stack = Stack::kOther;
        out_.fp = Fp::kOther;
        return Skip(3);
      case 0xc9:
        out_.stack = word_ ? Stack::kOther : Stack::kLeave;
        if (word_) out_.fp = Fp::kOther;
        return;
      case 0xca:
        Skip(2);
        [[fallthrough]];
      case 0xcb:
      case 0xcc:
      case 0xcf:
      case 0xf1:
      case 0xf4:
        out_.flow = Flow::kStop;
        return;
      case 0xcd:
        return Skip(1);
      case 0xd0:
      case 0xd2:
        return Operands(kRm | kByte);
      case 0xd1:
      case 0xd3:
        return Operands(kRm);
      case 0xd7:
        return;
      case 0xe0:
      case 0xe1:
      case 0xe2:
      case 0xe3:
        return Jump<int8_t>(Flow::kBranch);
      case 0xe4:
      case 0xe5:
      case 0xe6:
      case 0xe7:
        return Skip(1);
      case 0xe8:
        return Jump<int32_t>(Flow::kCall);
      case 0xe9:
        return Jump<int32_t>(Flow::kJump);
      case 0xeb:
        return Jump<int8_t>(Flow::kJump);
      case 0xec:
      case 0xed:
      case 0xee:
      case 0xef:
      case 0xf5:
      case 0xf8:
      case 0xf9:
      case 0xfa:
      case 0xfb:
      case 0xfc:
      case 0xfd:
        return;
      case 0xf6:
      case 0xf7: {
        ModRm();
        const bool tests = digit_ < 2;
        if (digit_ == 2 || digit_ == 3) Note(kRm | (opcode == 0xf6 ? kByte : 0));
        if (tests) Skip(opcode == 0xf6 ? 1 : ImmediateZ());
        return;
      }
      case 0xfe:
        ModRm();
        if (digit_ > 1) return Unknown();
        return Note(kRm | kByte);
      case 0xff:
        return GroupFive();
      default:
        return Unknown();
    }
  }

  // add, or, adc, sbb, and, sub, xor, cmp with a constant.
  void Arithmetic(bool byte) {
    ModRm();
    const int32_t constant = byte ? Signed<int8_t>() : ImmediateZ() == 2 ? Signed<int16_t>() : Signed<int32_t>();
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

  void TwoBytes() {
    const uint8_t opcode = Byte();
    if (!ok_) return;
    if (opcode == 0x38) {
      const uint8_t third = Byte();
      // movbe and crc32; adcx and adox
      const bool to_register = (third == 0xf0 && repeat_ != 0) || third == 0xf1 || third == 0xf6 || third == 0xf0;
      const bool stores = third == 0xf1 && repeat_ == 0;
      return Operands(stores ? kRm : to_register ? kReg : kNothing);
    }
    if (opcode == 0x3a) {
      const uint8_t third = Byte();
      return Operands(third >= 0x14 && third <= 0x17 ? kRm : kNothing, 1);  // pextr
    }
    switch (opcode & 0xf0) {
      case 0x40:
        return Operands(kReg);  // cmov
      case 0x80:
        return Jump<int32_t>(Flow::kBranch);
      case 0x90:
        return Operands(kRm | kByte);  // set
      default:
        break;
    }
    if (opcode >= 0xc8 && opcode <= 0xcf) return WriteRegister((opcode & 7u) | (rex_ & 1u) << 3);  // bswap
    switch (opcode) {
      case 0x05:  // syscall
      case 0x06:
      case 0x08:
      case 0x09:
      case 0x0e:
      case 0x30:
      case 0x31:
      case 0x32:
      case 0x33:
      case 0x34:
      case 0x37:
      case 0x77:
      case 0xa2:
      case 0xaa:
        return;
      case 0x07:
      case 0x0b:  // ud2
      case 0x35:
        out_.flow = Flow::kStop;
        return;
      case 0xb9:
      case 0xff:
        out_.flow = Flow::kStop;
        return Operands(kNothing);
      case 0xa0:
      case 0xa8:
        return Push();
      case 0xa1:
      case 0xa9:
        return Pop();
      case 0x04:
      case 0x0a:
      case 0x0c:
      case 0x24:
      case 0x25:
      case 0x26:
      case 0x27:
      case 0x36:
      case 0x39:
      case 0x3b:
      case 0x3c:
      case 0x3d:
      case 0x3e:
      case 0x3f:
      case 0x7a:
      case 0x7b:
      case 0xa6:
      case 0xa7:
        return Unknown();
      case 0x02:  // lar, lsl
      case 0x03:
      case 0x2c:  // to integers
      case 0x2d:
      case 0x50:
      case 0xaf:  // imul
      case 0xb2:
      case 0xb4:
      case 0xb5:
      case 0xb6:  // movzx
      case 0xb7:
      case 0xb8:  // popcnt
      case 0xbc:
      case 0xbd:
      case 0xbe:  // movsx
      case 0xbf:
      case 0xd7:
        return Operands(kReg);
      case 0xc5:
        return Operands(kReg, 1);
      case 0x00:
      case 0x01:
      case 0x20:
      case 0x21:
      case 0x7e:  // movd to a general register; or movq between others, which is taken for it
      case 0xa5:
      case 0xad:
      case 0xab:
      case 0xb3:
      case 0xbb:
      case 0xb1:
        return Operands(kRm);
      case 0xc7:  // rdrand, rdseed, rdpid
        return Operands(kRm);
      case 0x1e:  // rdsspq is one of them; the others are nops
        return Operands(repeat_ != 0 ? kRm : kNothing);
      case 0xb0:
        return Operands(kRm | kByte);
      case 0xc0:
        return Operands(kReg | kRm | kByte);
      case 0xc1:
        return Operands(kReg | kRm);
      case 0xae:  // rdfsbase and rdgsbase
        return Operands(repeat_ == 0xf3 ? kRm : kNothing);
      case 0xa4:
      case 0xac:
        return Operands(kRm, 1);
      case 0xba:
        ModRm();
        if (digit_ > 4) Note(kRm);
        return Skip(1);
      case 0x0f:
      case 0x70:
      case 0x71:
      case 0x72:
      case 0x73:
      case 0xc2:
      case 0xc4:
      case 0xc6:
        return Operands(kNothing, 1);
      default:
        return Operands(kNothing);
    }
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
    const bool known = map >= 1 && (map <= 3 || (evex && (map == 5 || map == 6)));
    if (!known) return Unknown();
    if (map == 1 && opcode == 0x77) return;  // vzeroupper
    ModRm();
    unsigned writes = kNothing;
    if (map == 1 && (opcode == 0x2c || opcode == 0x2d || opcode == 0x50 || opcode == 0xc5 || opcode == 0xd7))
      writes = kReg;
    if (map == 1 && opcode == 0x93) writes = kReg;  // kmov to a general register
    if (map == 1 && opcode == 0x7e && prefix == 1) writes = kRm;
    if (map == 5 && (opcode == 0x2c || opcode == 0x2d || opcode == 0x78 || opcode == 0x79)) writes = kReg;
    if (evex && map == 1 && (opcode == 0x78 || opcode == 0x79)) writes = kReg;
    if (map == 5 && opcode == 0x7e) writes = kRm;
    if (map == 2 && !evex) {
      if (opcode == 0xf2 || opcode == 0xf5 || opcode == 0xf7) writes = kReg;
      if (opcode == 0xf3) writes = kThird;
      if (opcode == 0xf6) writes = kReg | kThird;                   // mulx
      if (opcode >= 0xe0 && opcode <= 0xef) writes = kThird | kRm;  // cmpccxadd
    }
    if (map == 3 && opcode >= 0x14 && opcode <= 0x17) writes = kRm;
    if (map == 3 && !evex && opcode == 0xf0) writes = kReg;  // rorx
    Note(writes, third);
    const bool immediate =
        map == 3 ||
        (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6)));
    if (immediate) Skip(1);
  }

  std::span<const std::byte> code_;
  size_t at_ = 0;
  bool ok_ = true;
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
