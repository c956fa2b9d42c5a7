#include "unwind_data/return_trap.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

// push rax; push rbp; push rbx; push r15; push r14; push r13; push r12
constexpr auto kX64Trap = std::to_array<uint8_t>({0x50, 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54});
// push rax; push rdx; mov rax, fs:[0]
constexpr auto kX64AotTrap = std::to_array<uint8_t>({0x50, 0x52, 0x64, 0x48, 0x8B, 0x04, 0x25, 0, 0, 0, 0});

// An instruction at a place in a function, but for the bits that differ from version to version.
struct Arm64Instruction {
  uint64_t place;
  uint32_t value;
  uint32_t bits = 0xFFFFFFFF;
};
constexpr uint32_t kAllButOffset = 0xFFC07FFF;  // of ldp and stp

constexpr auto kArm64Trap = std::to_array<Arm64Instruction>({
    {0, 0xA9807BFD, kAllButOffset},  // stp x29, x30, [sp, #-n]!
    {1, 0x910003FD},                 // mov x29, sp
    {2, 0xA90153F3},                 // stp x19, x20, [sp, #16]
    {3, 0xA9025BF5},                 // stp x21, x22, [sp, #32]
    {4, 0xA90363F7},                 // stp x23, x24, [sp, #48]
    {5, 0xA9046BF9},                 // stp x25, x26, [sp, #64]
    {6, 0xA90573FB},                 // stp x27, x28, [sp, #80]
    {7, 0xA90607E0},                 // stp x0, x1, [sp, #96]
});
constexpr auto kResultsOf9 = std::to_array<Arm64Instruction>({
    {8, 0xAD0387E0},  // stp q0, q1, [sp, #112]
});
constexpr auto kResultsOf10 = std::to_array<Arm64Instruction>({
    {8, 0xF9003BE2},  // str x2, [sp, #112]
    {9, 0xAD0407E0},  // stp q0, q1, [sp, #128]
});
// Between the first two the linker puts what it makes of finding a thread's variable.
constexpr auto kArm64AotTrap = std::to_array<Arm64Instruction>({
    {0, 0xA9BF7BE0},                 // stp x0, x30, [sp, #-16]!
    {5, 0xD53BD042},                 // mrs x2, tpidr_el0
    {6, 0x8B000042},                 // add x2, x2, x0
    {7, 0xA8C17BE0},                 // ldp x0, x30, [sp], #16
    {8, 0xA940305E, kAllButOffset},  // ldp x30, x12, [x2, #n]
});

bool HasBytes(std::span<const std::byte> code, std::span<const uint8_t> bytes) {
  const std::span<const std::byte> first = std::as_bytes(bytes);
  return code.size() >= first.size() && std::equal(first.begin(), first.end(), code.begin());
}

bool HasInstructions(std::span<const std::byte> code, std::span<const Arm64Instruction> instructions) {
  return std::all_of(instructions.begin(), instructions.end(), [&](const Arm64Instruction& one) {
    const auto there = LoadAt<uint32_t>(code, one.place * sizeof(uint32_t));
    return there && (*there & one.bits) == one.value;
  });
}

}  // namespace

bool BeginsReturnTrap(ElfMachine machine, std::span<const std::byte> code) {
  if (machine == ElfMachine::kX64) return HasBytes(code, kX64Trap);
  return HasInstructions(code, kArm64Trap) &&
         (HasInstructions(code, kResultsOf9) || HasInstructions(code, kResultsOf10));
}

bool BeginsAotReturnTrap(ElfMachine machine, std::span<const std::byte> code) {
  return machine == ElfMachine::kX64 ? HasBytes(code, kX64AotTrap) : HasInstructions(code, kArm64AotTrap);
}

CfiRow RowOfReturnTrap(CfiRow row) {
  row.cfa_offset -= 8;
  return row;
}

}  // namespace clrsampler
