// The opcode maps of x86-64: what follows an opcode, and which general registers its instruction writes.
//
// By Intel's manual (Software Developer's Manual, volume 2, appendix A, "Opcode Map"), tables.
#ifndef CLRSAMPLER_FORMATS_X64_OPCODE_MAPS_H_
#define CLRSAMPLER_FORMATS_X64_OPCODE_MAPS_H_

#include <array>
#include <cstdint>

namespace clrsampler {

// The general registers that an instruction writes, as its operands are encoded.
enum X64Writes : uint8_t {
  kNothing = 0,
  kReg = 1,    // the register of ModRM.reg
  kRm = 2,     // that of ModRM.rm, if it is one
  kByte = 4,   // of a byte: 4 to 7 are ah to bh without a REX prefix
  kThird = 8,  // that of VEX.vvvv
};

// How an instruction is decoded. Groups are the manual's: opcodes that ModRM.reg tells apart.
enum class X64Form : uint8_t {
  kUnknown,
  // Only operands follow: a constant of one byte or of two or four (Z), ModRM, or both.
  kPlain,
  kImmediate8,
  kImmediateZ,
  kModRm,
  kModRm8,
  kModRmZ,
  // The stack pointer moves.
  kPush,
  kPushImmediate8,
  kPushImmediateZ,
  kPushRegister,
  kPop,
  kPopRegister,
  kPopOperand,
  kEnter,
  kLeave,
  kLastOfStack = kLeave,
  // Another instruction than the next may follow.
  kBranch8,
  kBranch32,
  kJump8,
  kJump32,
  kCall,
  kReturn,
  kReturnAndPop,
  kStop,
  kStop16,     // with a constant of two bytes
  kStopModRm,  // with operands
  kLastOfFlow = kStopModRm,
  // The opcode names a register, or the instruction may move between sp and rbp.
  kExchange,
  kMoveConstantByte,
  kMoveConstant,
  kByteSwap,
  kMoveOffset,
  kMoveTo,
  kMoveFrom,
  kLoadAddress,
  kExclusiveOrTo,
  kExclusiveOrFrom,
  kLastOfRegisters = kExclusiveOrFrom,
  // ModRM, a prefix or a third byte tells instructions apart.
  kGroup1Byte,
  kGroup1,
  kGroup3,
  kGroup4,
  kGroup5,
  kGroup8,
  kGroup11,
  kGroup15,
  kShadowStackOrNop,
  kMap38,
  kMap3a,
};

struct X64Opcode {
  X64Form form;
  uint8_t writes;  // X64Writes; of kModRm, kModRm8 and kModRmZ
};

namespace opcode_map_cells {

constexpr X64Opcode ___{X64Form::kUnknown, kNothing};
constexpr X64Opcode non{X64Form::kPlain, kNothing};
constexpr X64Opcode i8_{X64Form::kImmediate8, kNothing};
constexpr X64Opcode iz_{X64Form::kImmediateZ, kNothing};
constexpr X64Opcode mod{X64Form::kModRm, kNothing};
constexpr X64Opcode md8{X64Form::kModRm8, kNothing};
constexpr X64Opcode rm_{X64Form::kModRm, kRm};
constexpr X64Opcode rmb{X64Form::kModRm, kRm | kByte};
constexpr X64Opcode reg{X64Form::kModRm, kReg};
constexpr X64Opcode rgb{X64Form::kModRm, kReg | kByte};
constexpr X64Opcode xch{X64Form::kModRm, kReg | kRm};
constexpr X64Opcode xcb{X64Form::kModRm, kReg | kRm | kByte};
constexpr X64Opcode rm8{X64Form::kModRm8, kRm};
constexpr X64Opcode rb8{X64Form::kModRm8, kRm | kByte};
constexpr X64Opcode rg8{X64Form::kModRm8, kReg};
constexpr X64Opcode rgz{X64Form::kModRmZ, kReg};
constexpr X64Opcode psh{X64Form::kPush, kNothing};
constexpr X64Opcode ps8{X64Form::kPushImmediate8, kNothing};
constexpr X64Opcode psz{X64Form::kPushImmediateZ, kNothing};
constexpr X64Opcode psr{X64Form::kPushRegister, kNothing};
constexpr X64Opcode pop{X64Form::kPop, kNothing};
constexpr X64Opcode ppr{X64Form::kPopRegister, kNothing};
constexpr X64Opcode ppm{X64Form::kPopOperand, kNothing};
constexpr X64Opcode ent{X64Form::kEnter, kNothing};
constexpr X64Opcode lev{X64Form::kLeave, kNothing};
constexpr X64Opcode br8{X64Form::kBranch8, kNothing};
constexpr X64Opcode brz{X64Form::kBranch32, kNothing};
constexpr X64Opcode jm8{X64Form::kJump8, kNothing};
constexpr X64Opcode jmp{X64Form::kJump32, kNothing};
constexpr X64Opcode cal{X64Form::kCall, kNothing};
constexpr X64Opcode ret{X64Form::kReturn, kNothing};
constexpr X64Opcode rtp{X64Form::kReturnAndPop, kNothing};
constexpr X64Opcode stp{X64Form::kStop, kNothing};
constexpr X64Opcode s16{X64Form::kStop16, kNothing};
constexpr X64Opcode stm{X64Form::kStopModRm, kNothing};
constexpr X64Opcode xcr{X64Form::kExchange, kNothing};
constexpr X64Opcode mcb{X64Form::kMoveConstantByte, kNothing};
constexpr X64Opcode mc_{X64Form::kMoveConstant, kNothing};
constexpr X64Opcode bsw{X64Form::kByteSwap, kNothing};
constexpr X64Opcode mof{X64Form::kMoveOffset, kNothing};
constexpr X64Opcode mvt{X64Form::kMoveTo, kNothing};
constexpr X64Opcode mvf{X64Form::kMoveFrom, kNothing};
constexpr X64Opcode lea{X64Form::kLoadAddress, kNothing};
constexpr X64Opcode xrt{X64Form::kExclusiveOrTo, kNothing};
constexpr X64Opcode xrf{X64Form::kExclusiveOrFrom, kNothing};
constexpr X64Opcode g1b{X64Form::kGroup1Byte, kNothing};
constexpr X64Opcode g1_{X64Form::kGroup1, kNothing};
constexpr X64Opcode g3_{X64Form::kGroup3, kNothing};
constexpr X64Opcode g4_{X64Form::kGroup4, kNothing};
constexpr X64Opcode g5_{X64Form::kGroup5, kNothing};
constexpr X64Opcode g8_{X64Form::kGroup8, kNothing};
constexpr X64Opcode g11{X64Form::kGroup11, kNothing};
constexpr X64Opcode g15{X64Form::kGroup15, kNothing};
constexpr X64Opcode nop{X64Form::kShadowStackOrNop, kNothing};
constexpr X64Opcode m38{X64Form::kMap38, kNothing};
constexpr X64Opcode m3a{X64Form::kMap3a, kNothing};

}  // namespace opcode_map_cells

// clang-format off
inline constexpr std::array<X64Opcode, 256> kX64OneByteMap = [] {
  using namespace opcode_map_cells;  // NOLINT(google-build-using-namespace): the cells of a table are short
  return std::array<X64Opcode, 256>{
    rmb, rm_, rgb, reg, i8_, iz_, ___, ___, rmb, rm_, rgb, reg, i8_, iz_, ___, ___,  // 00
    rmb, rm_, rgb, reg, i8_, iz_, ___, ___, rmb, rm_, rgb, reg, i8_, iz_, ___, ___,  // 10
    rmb, rm_, rgb, reg, i8_, iz_, ___, ___, rmb, rm_, rgb, reg, i8_, iz_, ___, ___,  // 20
    rmb, xrt, rgb, xrf, i8_, iz_, ___, ___, mod, mod, mod, mod, i8_, iz_, ___, ___,  // 30
    ___, ___, ___, ___, ___, ___, ___, ___, ___, ___, ___, ___, ___, ___, ___, ___,  // 40
    psr, psr, psr, psr, psr, psr, psr, psr, ppr, ppr, ppr, ppr, ppr, ppr, ppr, ppr,  // 50
    ___, ___, ___, reg, ___, ___, ___, ___, psz, rgz, ps8, rg8, non, non, non, non,  // 60
    br8, br8, br8, br8, br8, br8, br8, br8, br8, br8, br8, br8, br8, br8, br8, br8,  // 70
    g1b, g1_, ___, g1_, mod, mod, xcb, xch, rmb, mvt, rgb, mvf, rm_, lea, mod, ppm,  // 80
    xcr, xcr, xcr, xcr, xcr, xcr, xcr, xcr, non, non, ___, non, psh, pop, non, non,  // 90
    mof, mof, mof, mof, non, non, non, non, i8_, iz_, non, non, non, non, non, non,  // a0
    mcb, mcb, mcb, mcb, mcb, mcb, mcb, mcb, mc_, mc_, mc_, mc_, mc_, mc_, mc_, mc_,  // b0
    rb8, rm8, rtp, ret, ___, ___, rb8, g11, ent, lev, s16, stp, stp, i8_, ___, stp,  // c0
    rmb, rm_, rmb, rm_, ___, ___, ___, non, mod, mod, mod, mod, mod, mod, mod, mod,  // d0
    br8, br8, br8, br8, i8_, i8_, i8_, i8_, cal, jmp, ___, jm8, non, non, non, non,  // e0
    ___, stp, ___, ___, stp, non, g3_, g3_, non, non, non, non, non, non, g4_, g5_,  // f0
  };
}();

// Behind the byte 0F.
inline constexpr std::array<X64Opcode, 256> kX64TwoByteMap = [] {
  using namespace opcode_map_cells;  // NOLINT(google-build-using-namespace)
  return std::array<X64Opcode, 256>{
    rm_, rm_, reg, reg, ___, non, non, stp, non, non, ___, stp, ___, mod, non, md8,  // 00
    mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, nop, mod,  // 10
    rm_, rm_, mod, mod, ___, ___, ___, ___, mod, mod, mod, mod, reg, reg, mod, mod,  // 20
    non, non, non, non, non, stp, ___, non, m38, ___, m3a, ___, ___, ___, ___, ___,  // 30
    reg, reg, reg, reg, reg, reg, reg, reg, reg, reg, reg, reg, reg, reg, reg, reg,  // 40
    reg, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod,  // 50
    mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod,  // 60
    md8, md8, md8, md8, mod, mod, mod, non, mod, mod, ___, ___, mod, mod, rm_, mod,  // 70
    brz, brz, brz, brz, brz, brz, brz, brz, brz, brz, brz, brz, brz, brz, brz, brz,  // 80
    rmb, rmb, rmb, rmb, rmb, rmb, rmb, rmb, rmb, rmb, rmb, rmb, rmb, rmb, rmb, rmb,  // 90
    psh, pop, non, mod, rm8, rm_, ___, ___, psh, pop, non, rm_, rm8, rm_, g15, reg,  // a0
    rmb, rm_, reg, rm_, reg, reg, reg, reg, reg, stm, g8_, rm_, reg, reg, reg, reg,  // b0
    xcb, xch, md8, mod, md8, rg8, md8, rm_, bsw, bsw, bsw, bsw, bsw, bsw, bsw, bsw,  // c0
    mod, mod, mod, mod, mod, mod, mod, reg, mod, mod, mod, mod, mod, mod, mod, mod,  // d0
    mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod,  // e0
    mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, mod, stm,  // f0
  };
}();
// clang-format on

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_X64_OPCODE_MAPS_H_
