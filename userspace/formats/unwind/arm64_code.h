// Where the return address of a sampled function is, by the instructions around the sampled one: compiled arm64 code.
//
// CoreCLR's JIT and crossgen2 give every method a frame record {x29, x30} that x29 points to (src/coreclr/jit/
// codegenarm64.cpp, .NET 8 to 10). It is not there yet in the prologue and not there any more in the epilogue; and
// stubs have none. Then the return address is in x30. The next instructions tell these states apart, so that the
// function's beginning need not be known:
//
//   x29 is set from sp           a prologue: the record is not in place
//   x30 is loaded, or called     the record is in place: x30 is saved there
//   a return before any of these, or a jump through a pointer just loaded: x30 is the return address
//
// Funclets have their parent's x29 from the first instruction on, so for them the record is always in place.
#ifndef CLRSAMPLER_FORMATS_UNWIND_ARM64_CODE_H_
#define CLRSAMPLER_FORMATS_UNWIND_ARM64_CODE_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace clrsampler {

enum class Arm64Return : uint8_t {
  kUnknown,       // there are not enough bytes, or no caller's sp could be where they say
  kFrameRecord,   // x29 points to it
  kLinkRegister,  // it is in x30
};

struct Arm64Leaf {
  Arm64Return where = Arm64Return::kUnknown;
  uint32_t sp_above = 0;  // of kLinkRegister: from sp to the caller's

  friend bool operator==(const Arm64Leaf&, const Arm64Leaf&) = default;
};

// As many bytes are of use before the sampled instruction, and from it on. Stubs that resolve interface calls jump back
// by 112.
constexpr size_t kArm64BytesBefore = 128;
constexpr size_t kArm64BytesFrom = 256;

// `offset` of the instruction that was to be executed next. Looks at no more bytes than these.
Arm64Leaf DecodeArm64Leaf(std::span<const std::byte> code, size_t offset);

// Whether an instruction calls: bl, blr and the authenticating forms of blr.
bool IsArm64Call(uint32_t instruction);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_UNWIND_ARM64_CODE_H_
