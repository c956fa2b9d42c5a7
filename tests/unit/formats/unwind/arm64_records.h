// Functions of System.Private.CoreLib 10.0.15 for arm64: the .xdata record, the code, and what a disassembler says.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_UNWIND_ARM64_RECORDS_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_UNWIND_ARM64_RECORDS_H_

#include "unit/formats/unwind/code_bytes.h"

namespace clrsampler {

// 0: stp x29,x30,[sp,#-32]!; 4: stp x19,x20,[sp,#16]; 8: mov x29,sp; ...; 1c: ldp x19,x20; 20: ldp x29,x30; 24: ret
constexpr CodeBytes kArm64Plain = {"fd7bbea9f35301a9fd0300916b5900d06b013391700140f900023fd6f35341a9fd7bc2a8c0035fd6",
                                   "0a00501007004000e1c80283e4e4e4e4105b8400"};
// 0: stp x29,x30,[sp,#-48]!; 4: stp x19,x20,[sp,#16]; 8: stp x21,x22,[sp,#32]; c: adr; ...; 1c: ret
constexpr CodeBytes kArm64Funclet = {"fd7bbda9f35301a9f55b02a9c0d8ff10f55b42a9f35341a9fd7bc3a8c0035fd6",
                                     "08003010e6c80285e4e4e4e4105b8400"};
// 0: sub sp,sp,#0x30; 4: stp x29,x30,[sp,#8]; 8: str x19,[sp,#40]; c: add x29,sp,#8; ... (140 bytes)
constexpr CodeBytes kArm64RecordAbove = {"ffc300d1fdfb00a9f31700f9fd230091f303072aab630091eb0300f98b5500f0",
                                         "23009010180080001f008000e201d0054103e4e4105b8400"};
// 0: stp x29,x30,[sp,#-32]!; 4: str d8,[sp,#24]; 8: mov x29,sp; ...; 30: ret
constexpr CodeBytes kArm64Vector = {
    "fd7bbea9e80f00fdfd0300916801005c0028681e4b5800b06b213c91700140f900023fd60038681ee80f40fdfd7bc2a8c0035fd6",
    "0d0050100a004000e1dc0383e4e4e4e4105b8400"};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_UNWIND_ARM64_RECORDS_H_
