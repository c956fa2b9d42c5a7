// The sparse opcode maps of x86-64: VEX and EVEX, 0F 38 and 0F 3A. Few of their instructions write general registers.
//
// By Intel's manual (Software Developer's Manual, volume 2, appendix A, "Opcode Map"), tables.
#ifndef CLRSAMPLER_FORMATS_X64_VECTOR_OPCODES_H_
#define CLRSAMPLER_FORMATS_X64_VECTOR_OPCODES_H_

#include <cstdint>

#include "formats/x64/opcode_maps.h"

namespace clrsampler {

struct X64VectorEncoding {
  unsigned map;     // 1: 0F, 2: 0F 38, 3: 0F 3A; 5 and 6 are EVEX's own
  unsigned prefix;  // 1: 66, 2: F3, 3: F2
  uint8_t opcode;
  bool evex;
};

// kPlain, kModRm or kModRm8. kUnknown: there is no such map.
X64Opcode X64VectorOpcode(const X64VectorEncoding& encoding);

// The writes of the instructions behind 0F 38 and 0F 3A: X64Writes.
uint8_t X64WritesOfMap38(uint8_t opcode, bool repeated);
uint8_t X64WritesOfMap3a(uint8_t opcode);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_X64_VECTOR_OPCODES_H_
