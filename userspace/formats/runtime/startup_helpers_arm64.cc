#include "formats/runtime/startup_helpers_arm64.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr uint64_t kInstructionBytes = sizeof(uint32_t), kPageMask = 0xfff;
constexpr uint32_t kStorePlace = 0xf8205901;  // str x1, [x8, w0, uxtw #3]
constexpr uint32_t kReturn = 0xd65f03c0, kNop = 0xd503201f;
// The most instructions between a call and the next one: the frame is taken down, and the function ends with that call.
constexpr uint64_t kMostBetween = 6;
// The bytes in front of a call that are followed. 9.0.23 loads a register 20 bytes before its last use.
constexpr uint64_t kMostBefore = 128;

bool IsCall(uint32_t instruction) { return (instruction & 0xfc000000) == 0x94000000; }
bool IsJump(uint32_t instruction) { return (instruction & 0xfc000000) == 0x14000000; }
bool IsPopOfFrameRecord(uint32_t instruction) { return (instruction & 0xffc07fff) == 0xa8c07bfd; }

// A signed field of an instruction: its lowest bit, and how many there are.
int64_t Field(uint32_t instruction, int low, int bits) {
  return static_cast<int64_t>(uint64_t{instruction} << (64 - low - bits)) >> (64 - bits);
}

// The distance of a branch in bytes; nullopt: it is none with a distance.
std::optional<int64_t> BranchDistance(uint32_t instruction) {
  if (IsCall(instruction) || IsJump(instruction)) return Field(instruction, 0, 26) * 4;
  const bool by_condition = (instruction & 0xff000010) == 0x54000000;
  const bool by_zero = (instruction & 0x7e000000) == 0x34000000;
  if (by_condition || by_zero) return Field(instruction, 5, 19) * 4;
  if ((instruction & 0x7e000000) == 0x36000000) return Field(instruction, 5, 14) * 4;  // by one bit
  return std::nullopt;
}

VirtualAddress Moved(VirtualAddress from, int64_t distance) { return {from.value + static_cast<uint64_t>(distance)}; }

// The values of registers, as the instructions given to Follow, one after the other, set them.
class Registers {
 public:
  explicit Registers(const RelativeRelocations& relocations) : relocations_(relocations) {}

  std::optional<uint64_t> At(size_t number) const { return known_[number]; }
  void Follow(uint32_t instruction, VirtualAddress at) {
    if (IsCall(instruction)) return ForgetAfterCall();
    const uint32_t to = instruction & 31, from = instruction >> 5 & 31;
    if (to >= known_.size()) return Forget();
    if (instruction == kNop) return;
    if ((instruction & 0x9f000000) == 0x90000000) {  // adrp
      known_[to] = (at.value & ~kPageMask) + static_cast<uint64_t>(AdrDistance(instruction)) * (kPageMask + 1);
    } else if ((instruction & 0x9f000000) == 0x10000000) {  // adr
      known_[to] = at.value + static_cast<uint64_t>(AdrDistance(instruction));
    } else if ((instruction & 0xffe00000) == 0x52800000) {  // mov wN, number
      known_[to] = instruction >> 5 & 0xffff;
    } else if ((instruction & 0xffffffe0) == 0x2a1f03e0) {  // mov wN, wzr
      known_[to] = 0;
    } else if ((instruction & 0xffe0ffe0) == 0xaa0003e0) {  // mov xN, xM
      known_[to] = Content(instruction >> 16 & 31);
    } else if ((instruction & 0xffc00000) == 0x91000000) {  // add xN, xM, number
      known_[to] = Plus(from, instruction >> 10 & 0xfff);
    } else if ((instruction & 0xffc00000) == 0xf9400000) {  // ldr xN, [xM, number]
      known_[to] = Loaded(Plus(from, uint64_t{instruction >> 10 & 0xfff} * sizeof(uint64_t)));
    } else {
      Forget();
    }
  }

 private:
  void Forget() { known_.fill(std::nullopt); }
  // x19 to x28 survive one.
  void ForgetAfterCall() { std::fill(known_.begin(), known_.begin() + 19, std::nullopt); }
  static int64_t AdrDistance(uint32_t instruction) { return Field(instruction, 5, 19) * 4 + (instruction >> 29 & 3); }
  std::optional<uint64_t> Content(uint32_t number) const {
    return number < known_.size() ? known_[number] : std::nullopt;
  }
  std::optional<uint64_t> Plus(uint32_t number, uint64_t more) const {
    const std::optional<uint64_t> content = Content(number);
    return content ? std::optional(*content + more) : std::nullopt;
  }
  std::optional<uint64_t> Loaded(std::optional<uint64_t> slot) const {
    const auto held = slot ? relocations_.At({*slot}) : std::nullopt;
    return held ? std::optional(held->value) : std::nullopt;
  }

  const RelativeRelocations& relocations_;
  std::array<std::optional<uint64_t>, 29> known_;  // x0 to x28
};

}  // namespace

bool IsArm64Setter(Arm64Code code, VirtualAddress start, VirtualAddress table) {
  static const auto& none = *new RelativeRelocations();
  const auto store = LoadAt<uint32_t>(code, 2 * kInstructionBytes), end = LoadAt<uint32_t>(code, 3 * kInstructionBytes);
  if (store != kStorePlace || end != kReturn) return false;
  Registers registers(none);
  registers.Follow(*LoadAt<uint32_t>(code, 0), start);
  registers.Follow(*LoadAt<uint32_t>(code, kInstructionBytes), {start.value + kInstructionBytes});
  return registers.At(8) == table.value;
}

void FindArm64Calls(Arm64Code code, VirtualAddress start, VirtualAddress setter, const RelativeRelocations& relocations,
                    const Arm64CallFound& found) {
  for (uint64_t at = 0; code.size() - at >= kInstructionBytes; at += kInstructionBytes) {
    const uint32_t instruction = *LoadAt<uint32_t>(code, at);
    const VirtualAddress here{start.value + at};
    if (!IsCall(instruction) || Moved(here, *BranchDistance(instruction)) != setter) continue;
    Registers registers(relocations);
    for (uint64_t before = at - std::min(at, kMostBefore); before < at; before += kInstructionBytes) {
      registers.Follow(*LoadAt<uint32_t>(code, before), {start.value + before});
    }
    if (registers.At(0) && registers.At(1)) found(*registers.At(0), {*registers.At(1)}, here);
  }
}

std::optional<VirtualAddress> PassedWithZeroArm64(Arm64Code code, VirtualAddress start,
                                                  const RelativeRelocations& relocations) {
  Registers registers(relocations);
  for (uint64_t i = 0; i <= kMostBetween; ++i) {
    const auto instruction = LoadAt<uint32_t>(code, i * kInstructionBytes);
    if (!instruction) return std::nullopt;
    if (IsPopOfFrameRecord(*instruction)) continue;
    if (IsCall(*instruction) || IsJump(*instruction)) {
      if (registers.At(1) != 0 || !registers.At(0)) return std::nullopt;
      return VirtualAddress{*registers.At(0)};
    }
    registers.Follow(*instruction, {start.value + i * kInstructionBytes});
  }
  return std::nullopt;
}

std::optional<VirtualAddress> OnlyJumpArm64(Arm64Code function, VirtualAddress start) {
  std::optional<VirtualAddress> only;
  for (uint64_t at = 0; function.size() - at >= kInstructionBytes; at += kInstructionBytes) {
    const uint32_t instruction = *LoadAt<uint32_t>(function, at);
    if ((instruction & 0xfe1f0000) == 0xd61f0000 && (instruction & 0x00600000) == 0) return std::nullopt;  // br
    const std::optional<int64_t> distance = BranchDistance(instruction);
    if (!distance || IsCall(instruction)) continue;
    const VirtualAddress target = Moved({start.value + at}, *distance);
    if (target.value - start.value < function.size()) continue;
    if (only && *only != target) return std::nullopt;
    only = target;
  }
  return only;
}

}  // namespace clrsampler
