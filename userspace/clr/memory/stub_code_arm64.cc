#include "clr/memory/stub_code_arm64.h"

#include <bit>
#include <cstdint>

#include "formats/byte_reader.h"

namespace clrsampler::arm64 {
namespace {

constexpr size_t kArm64InstructionBytes = 4, kLiteralBytes = 8;
constexpr uint32_t kBranchX16 = 0xd61f0200;
constexpr uint32_t kFirstScratch = 8;  // arguments come in x0 to x7

uint32_t At(std::span<const std::byte> code, size_t index) {
  return LoadAt<uint32_t>(code, index * kArm64InstructionBytes).value_or(0);  // 0 is no instruction (udf)
}

// ldr x<to>, [pc + distance]. nullopt: another instruction. Distances are to data behind the instruction.
std::optional<uint64_t> LiteralLoad(uint32_t instruction, uint32_t to) {
  if ((instruction & 0xff80001f) != (0x58000000 | to)) return std::nullopt;
  return uint64_t{instruction >> 5 & 0x3ffff} * kArm64InstructionBytes;
}

// mov x<to>, x<from>
bool IsMove(uint32_t instruction, uint32_t registers) {
  return (instruction & 0xffe0ffe0) == 0xaa0003e0 && (instruction & 31) < registers &&
         (instruction >> 16 & 31) < registers;
}

// Whether it loads or stores a 64-bit register on the stack.
bool IsLoadOrStore(uint32_t instruction) {
  return (instruction & 0xffc003e0) == 0xf94003e0 || (instruction & 0xffc003e0) == 0xf90003e0;
}

// ldr x16, [target]; br x16; target. The number of bytes that this has from the instruction on. 0: it is not there.
size_t JumpToLiteral(std::span<const std::byte> code, size_t index) {
  constexpr uint32_t kLoadBehindTheJump = 0x58000050;
  const size_t end = (index + 2) * kArm64InstructionBytes + kLiteralBytes;
  return At(code, index) == kLoadBehindTheJump && At(code, index + 1) == kBranchX16 && code.size() >= end ? end : 0;
}

}  // namespace

// ldr x9, [cell]; ldrh w10, [x9]; subs w10, w10, #1; strh w10, [x9]; b.eq +12; ldr x9, [target]; br x9;
// ldr x10, [target when it is zero]; br x10. The three cells follow each other, as many pages behind the stub as its
// page has.
std::optional<StubMatch> CallCountingStub(std::span<const std::byte> bytes) {
  constexpr uint32_t kCount[] = {0x7940012a, 0x7100054a, 0x7900012a, 0x54000060};
  constexpr size_t kTarget = 5, kLast = 7, kInstructions = 9;
  for (size_t i = 0; i < std::size(kCount); ++i) {
    if (At(bytes, i + 1) != kCount[i]) return std::nullopt;
  }
  const auto cell = LiteralLoad(At(bytes, 0), 9), target = LiteralLoad(At(bytes, kTarget), 9),
             last = LiteralLoad(At(bytes, kLast), 10);
  if (!cell || !target || !last || At(bytes, kTarget + 1) != 0xd61f0120 || At(bytes, kLast + 1) != 0xd61f0140 ||
      *cell < 4096 || *cell > 65536 || !std::has_single_bit(*cell) ||
      *target + kTarget * kArm64InstructionBytes != *cell + kLiteralBytes ||
      *last + kLast * kArm64InstructionBytes != *cell + 2 * kLiteralBytes) {
    return std::nullopt;
  }
  return StubMatch{kInstructions * kArm64InstructionBytes, "CallCountingStub"};
}

// ldr x16, [x0, #32]; add x11, x0, #32; moves; br x16. 32 is where a delegate has the method.
std::optional<StubMatch> DelegateShuffleThunk(std::span<const std::byte> bytes) {
  constexpr uint32_t kRegisters = 16;
  if (At(bytes, 0) != 0xf9401010 || At(bytes, 1) != 0x9100800b) return std::nullopt;
  for (size_t i = 2; i < kMaxStubBytes / kArm64InstructionBytes; ++i) {
    const uint32_t instruction = At(bytes, i);
    if (instruction == kBranchX16) return StubMatch{(i + 1) * kArm64InstructionBytes, "DelegateShuffleThunk"};
    if (!IsMove(instruction, kRegisters) && !IsLoadOrStore(instruction)) return std::nullopt;
  }
  return std::nullopt;
}

// Moves of arguments, and a constant for one of them: movz, up to three movk. Or with the type of a boxed value in its
// place: ldr x<n>, [x0]; add x0, x0, #8. Then the jump.
std::optional<StubMatch> InstantiatingStub(std::span<const std::byte> bytes) {
  constexpr uint32_t kSkipHeader = 0x91002000;
  const auto is_constant = [](uint32_t instruction, uint32_t opcode) {
    return (instruction & 0xff800000) == opcode && (instruction & 31) < kFirstScratch;
  };
  size_t i = 0;
  while (i < kFirstScratch && IsMove(At(bytes, i), kFirstScratch)) ++i;
  bool unboxes = false;
  if (is_constant(At(bytes, i), 0xd2800000)) {
    ++i;
    for (int n = 0; n < 3 && is_constant(At(bytes, i), 0xf2800000); ++n) ++i;
  } else {
    const uint32_t load = At(bytes, i);
    if ((load & 0xffffffe0) == 0xf9400000 && (load & 31) < kFirstScratch) ++i;
    unboxes = At(bytes, i) == kSkipHeader;
    if (!unboxes) return std::nullopt;
    ++i;
  }
  const size_t end = JumpToLiteral(bytes, i);
  if (end == 0) return std::nullopt;
  return StubMatch{end, unboxes ? "UnboxingStub" : "InstantiatingStub"};
}

std::optional<StubMatch> JumpStub(std::span<const std::byte> bytes) {
  const size_t end = JumpToLiteral(bytes, 0);
  if (end == 0) return std::nullopt;
  return StubMatch{end, "JumpStub"};
}

}  // namespace clrsampler::arm64
