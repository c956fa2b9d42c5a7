#include "formats/x64/vector_opcodes.h"

namespace clrsampler {
namespace {

bool IsKnownMap(unsigned map, bool evex) { return map >= 1 && (map <= 3 || (evex && (map == 5 || map == 6))); }

// Conversions to integers, masks and extracted words.
unsigned WritesOfMap1(const X64VectorEncoding& e) {
  switch (e.opcode) {
    case 0x2c:
    case 0x2d:
    case 0x50:
    case 0x93:  // kmov to a general register
    case 0xc5:
    case 0xd7:
      return kReg;
    case 0x78:
    case 0x79:
      return e.evex ? kReg : kNothing;
    case 0x7e:
      return e.prefix == 1 ? kRm : kNothing;
    default:
      return kNothing;
  }
}

// Arithmetic of bits, VEX only.
unsigned WritesOfMap2(uint8_t opcode) {
  switch (opcode) {
    case 0xf2:
    case 0xf5:
    case 0xf7:
      return kReg;
    case 0xf3:
      return kThird;
    case 0xf6:  // mulx
      return kReg | kThird;
    default:
      return opcode >= 0xe0 && opcode <= 0xef ? kThird | kRm : +kNothing;  // cmpccxadd
  }
}

// Half precision, EVEX only.
unsigned WritesOfMap5(uint8_t opcode) {
  switch (opcode) {
    case 0x2c:
    case 0x2d:
    case 0x78:
    case 0x79:
      return kReg;
    case 0x7e:
      return kRm;
    default:
      return kNothing;
  }
}

unsigned WritesOf(const X64VectorEncoding& e) {
  switch (e.map) {
    case 1:
      return WritesOfMap1(e);
    case 2:
      return e.evex ? unsigned{kNothing} : WritesOfMap2(e.opcode);
    case 3:
      if (!e.evex && e.opcode == 0xf0) return kReg;  // rorx
      return X64WritesOfMap3a(e.opcode);
    case 5:
      return WritesOfMap5(e.opcode);
    default:
      return kNothing;
  }
}

bool HasImmediate(unsigned map, uint8_t opcode) {
  return map == 3 ||
         (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6)));
}

}  // namespace

X64Opcode X64VectorOpcode(const X64VectorEncoding& encoding) {
  if (!IsKnownMap(encoding.map, encoding.evex)) return {X64Form::kUnknown, kNothing};
  if (encoding.map == 1 && encoding.opcode == 0x77) return {X64Form::kPlain, kNothing};  // vzeroupper
  const X64Form form = HasImmediate(encoding.map, encoding.opcode) ? X64Form::kModRm8 : X64Form::kModRm;
  return {form, static_cast<uint8_t>(WritesOf(encoding))};
}

uint8_t X64WritesOfMap38(uint8_t opcode, bool repeated) {
  if (opcode == 0xf1) return repeated ? kReg : kRm;           // crc32; movbe to memory
  return opcode == 0xf0 || opcode == 0xf6 ? kReg : kNothing;  // movbe; adcx and adox
}

uint8_t X64WritesOfMap3a(uint8_t opcode) { return opcode >= 0x14 && opcode <= 0x17 ? kRm : kNothing; }  // pextr

}  // namespace clrsampler
