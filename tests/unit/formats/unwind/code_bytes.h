// Functions as they stand in System.Private.CoreLib 10.0.14 (x64) or were compiled by the JIT: code, unwind data, and
// what a disassembler says.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_UNWIND_CODE_BYTES_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_UNWIND_CODE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "formats/byte_reader.h"

namespace clrsampler {

inline std::vector<std::byte> Hex(absl::string_view hex) {
  const std::string text = absl::HexStringToBytes(hex);
  const std::span<const std::byte> bytes = AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

struct CodeBytes {
  const char* code;
  const char* unwind;
};

// 0: push rbp; 1: push r15; 3: push rbx; 4: lea rbp,[rsp+10h]; 9: call; f: nop; 10: pop rbx; 11: pop r15; 13: pop rbp;
// 14: ret
constexpr CodeBytes kFramed = {"55415753488d6c2410ff1551f79b00905b415f5dc3", "19040300043003f00150"};
// 0: push rbx; 1: sub rsp,10h; 5: mov rbx,rdx; 8: lea rdx,[rsp+8]; d: call; 13: mov rcx,[rsp+8]; 18: mov [rbx],rcx;
// 1b: add rsp,10h; 1f: pop rbx; 20: ret
constexpr CodeBytes kFrameless = {"534883ec10488bda488d542408ff157d999f00488b4c240848890b4883c4105bc3",
                                  "1905020005120130"};
// 0: push rbx; 1: mov rbx,rdi; 4: call; a: cmp; f: jne; 11: xor eax,eax; 13: pop rbx; 14: ret; 15: call; 1b: mov rax;
// 1f: mov rdi,rbx; 22: pop rbx; 23: rex.W jmp rax
constexpr CodeBytes kTailJump = {"53488bdfff152eefa4004883780800750433c05bc3ff151defa400488b4008488bfb5b48ffe0",
                                 "190101000130"};
// stackalloc.
//   0: push rbp; 1: push rbx; 2: sub rsp,18h; 6: lea rbp,[rsp+20h]; b: ...; 1f: sub rsp,100h; ...; 32: call; 38: ...;
//   55: lea rsp,[rbp-8]; 59: pop rbx; 5a: pop rbp; 5b: ret; ...; 8b: lea rsp,[rbp-8]; 8f: pop rbx; 90: pop rbp; 91: ret
constexpr CodeBytes kMovesSp = {
    "55534883ec18488d6c242033c0488945e8488b05e81ea400488945e08524244881ec00010000488d1c24488bf3ba80000000ff15e81fa50085"
    "c0752033c04c8d05bb1ea4004d8b004c3945e07406ff15fc1ea40090488d65f85b5dc33d8000000077d948895de88945f0488d7de8ff15b40f"
    "a6004c8d05851ea4004d8b004c3945e07406ff15c61ea40090488d65f85b5dc3",
    "190b04250b03062202300150"};
// Its beginning only. 0: push rbp, r15, r14, r13, r12, rbx; a: lea r11,[rsp-10d8h]; 12: call; 18: mov rsp,r11; 1b: lea
// rbp,[rsp+1100h]
constexpr CodeBytes kProbed = {"554157415641554154534c8d9c2428efffffff15681f5a00498be3488dac2400110000488b05d61d",
                               "191b08001b011b020a3009c007d005e003f00150"};
// A catch funclet of .NET 8. 0: push rbp; 1: push rbx; 2: push rax; 3: mov rbp,[rdi]; 6: mov [rsp],rbp; a: lea
// rbp,[rbp+30h]; e: ...; 16: call; 1c: call; 21: int3
constexpr CodeBytes kFunclet8 = {"555350488b2f48892c24488d6d30488b7de8488b75d8ff15d6699900e8d1504c7ecc",
                                 "19030300030202300150"};
// A finally funclet of .NET 10. 0: push rax; 1: mov rdi,[rbp-58h]; 5: call; b: nop; c: add rsp,8; 10: ret
constexpr CodeBytes kFunclet10 = {"50488b7da8ff1543c24400904883c408c3", "190101000102"};
// On-stack replacement, .NET 8; without its body.
//   0: mov rax,[rbp]; 4: push rax; 5: sub rsp,20h; 9: mov [rsp+98h],r15; 11: mov [rsp+90h],r14; 19: mov [rsp+88h],r13;
//   21: mov [rsp+80h],rbx; 29: lea rbp,[rsp+20h]; 2e: cdqe; 30: add rsp,80h; 37: pop rbx, r13, r14, r15, rbp; 3f: ret
constexpr CodeBytes kOsr = {
    "488b4500504883ec204c89bc24980000004c89b424900000004c89ac248800000048899c2480000000488d6c242048984881c4800000005b41"
    "5d415e415f5dc3",
    "19290c002934100021d4110019e4120011f413000932050200e20050"};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_UNWIND_CODE_BYTES_H_
