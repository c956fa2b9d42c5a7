#include "formats/runtime/startup_helpers.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "formats/byte_reader.h"
#include "formats/runtime/startup_helpers_arm64.h"
#include "formats/x64/instruction.h"

namespace clrsampler {
namespace {

constexpr std::byte operator""_b(unsigned long long value) { return static_cast<std::byte>(value); }

using Code = std::span<const std::byte>;

constexpr uint64_t kArm64CallBytes = 4;
constexpr uint64_t kCallBytes = 5, kPlaceBytes = 5, kLeaBytes = 7, kMoveBytes = 3;
constexpr std::array kLeaRsi = {0x48_b, 0x8d_b, 0x35_b}, kLeaRbx = {0x48_b, 0x8d_b, 0x1d_b},
                     kLeaRdi = {0x48_b, 0x8d_b, 0x3d_b}, kRbxToRsi = {0x48_b, 0x89_b, 0xde_b};
constexpr std::byte kCall = 0xe8_b, kMoveToEdi = 0xbf_b;
// push rbp; mov rbp, rsp; mov eax, edi; lea rcx, [table]; mov [rcx + rax * 8], rsi; pop rbp; ret
constexpr std::array kSetterHead = {0x55_b, 0x48_b, 0x89_b, 0xe5_b, 0x89_b, 0xf8_b, 0x48_b, 0x8d_b, 0x0d_b};
constexpr std::array kSetterTail = {0x48_b, 0x89_b, 0x34_b, 0xc1_b, 0x5d_b, 0xc3_b};
// 8.0.30 to 11.0.0 have four or five calls with constants. An image with more than this is no runtime.
constexpr size_t kMaxHelpers = 256;
// A function that is longer is no small helper.
constexpr uint64_t kMaxFunctionBytes = 4096;

bool Begins(Code code, Code with) {
  return code.size() >= with.size() && std::ranges::equal(code.first(with.size()), with);
}

// Where a distance of four bytes at `offset` of the code leads.
std::optional<VirtualAddress> Led(Code code, VirtualAddress start, uint64_t offset) {
  const std::optional<int32_t> distance = LoadAt<int32_t>(code, offset);
  if (!distance) return std::nullopt;
  return VirtualAddress{start.value + offset + sizeof(int32_t) + static_cast<uint64_t>(int64_t{*distance})};
}

std::optional<FunctionBounds> FunctionAt(const EhFrameTable& unwind, VirtualAddress address) {
  const std::optional<FunctionBounds> bounds = unwind.Find(address);
  if (!bounds || !bounds->end_known || bounds->start != address) return std::nullopt;
  return bounds;
}

bool IsX64Setter(Code code, VirtualAddress start, VirtualAddress table) {
  return Begins(code, kSetterHead) && Led(code, start, kSetterHead.size()) == table &&
         Begins(code.subspan(kSetterHead.size() + sizeof(int32_t)), kSetterTail);
}

std::optional<VirtualAddress> SetterOf(const ElfImage& image, const EhFrameTable& unwind, VirtualAddress table) {
  std::optional<VirtualAddress> setter;
  for (size_t i = 0; i < unwind.size(); ++i) {
    const VirtualAddress start = unwind.FunctionStart(i);
    const auto code = image.BytesFrom(start);
    if (!code || !image.IsExecutable(start)) continue;
    const bool is_setter =
        image.machine() == ElfMachine::kX64 ? IsX64Setter(*code, start, table) : IsArm64Setter(*code, start, table);
    if (!is_setter || !FunctionAt(unwind, start)) continue;
    if (setter) return std::nullopt;
    setter = start;
  }
  return setter;
}

// Reads calls of the setter in one segment of code.
class Calls {
 public:
  Calls(Code code, VirtualAddress start, VirtualAddress setter) : code_(code), start_(start), setter_(setter) {}

  template <typename Found>
  void Each(const Found& found) {
    for (auto at = std::ranges::find(code_, kCall); at != code_.end(); at = std::find(at + 1, code_.end(), kCall)) {
      const auto offset = static_cast<uint64_t>(at - code_.begin());
      if (Led(code_, start_, offset + 1) != setter_) continue;
      const std::optional<VirtualAddress> function = PassedTo(offset);
      if (function) found(place_, *function, VirtualAddress{start_.value + offset});
    }
  }

 private:
  // The function that the call passes; its place is in place_. Either
  //   lea rsi, [function]; mov edi, place; call
  // or, for several places,
  //   lea rbx, [function]; mov edi, place; mov rsi, rbx; call; mov edi, place; mov rsi, rbx; call
  std::optional<VirtualAddress> PassedTo(uint64_t call) {
    const uint64_t before = std::exchange(behind_, call + kCallBytes);
    if (const std::optional<uint64_t> move = PlaceBefore(call)) {
      if (*move < kLeaBytes || !Begins(code_.subspan(*move - kLeaBytes), kLeaRsi)) return std::nullopt;
      return Led(code_, start_, *move - sizeof(int32_t));
    }
    if (call < kMoveBytes || !Begins(code_.subspan(call - kMoveBytes), kRbxToRsi)) return std::nullopt;
    const std::optional<uint64_t> move = PlaceBefore(call - kMoveBytes);
    if (!move) return std::nullopt;
    if (*move >= kLeaBytes && Begins(code_.subspan(*move - kLeaBytes), kLeaRbx)) {
      in_rbx_ = Led(code_, start_, *move - sizeof(int32_t));
    } else if (*move != before) {
      in_rbx_.reset();
    }
    return in_rbx_;
  }

  // Where the instruction mov edi, place begins that ends at `end`.
  std::optional<uint64_t> PlaceBefore(uint64_t end) {
    if (end < kPlaceBytes || code_[end - kPlaceBytes] != kMoveToEdi) return std::nullopt;
    place_ = *LoadAt<uint32_t>(code_, end - sizeof(uint32_t));
    return end - kPlaceBytes;
  }

  Code code_;
  VirtualAddress start_, setter_;
  size_t place_ = 0;
  uint64_t behind_ = 0;                   // the last call
  std::optional<VirtualAddress> in_rbx_;  // there
};

}  // namespace

std::vector<StartupHelper> FindStartupHelpers(const ElfImage& image, const EhFrameTable& unwind,
                                              const RelativeRelocations& relocations, VirtualAddress table,
                                              size_t places) {
  std::vector<StartupHelper> helpers;
  const std::optional<VirtualAddress> setter = SetterOf(image, unwind, table);
  if (!setter) return helpers;
  const auto add = [&](uint64_t place, VirtualAddress function, VirtualAddress call) {
    if (helpers.size() > kMaxHelpers || place >= places || !FunctionAt(unwind, function)) return;
    helpers.push_back({static_cast<size_t>(place), function, call});
  };
  for (const LoadSegment& segment : image.segments()) {
    if (!image.IsExecutable(segment.address)) continue;
    const auto code = image.BytesFrom(segment.address);
    if (!code) continue;
    if (image.machine() == ElfMachine::kX64) {
      Calls(*code, segment.address, *setter).Each(add);
    } else {
      FindArm64Calls(*code, segment.address, *setter, relocations, add);
    }
  }
  if (helpers.size() > kMaxHelpers) helpers.clear();
  return helpers;
}

namespace {

// lea rdi, [function]; xor esi, esi
std::optional<VirtualAddress> PassedWithZeroX64(Code code, VirtualAddress start) {
  constexpr std::array kNoughtToEsi = {0x31_b, 0xf6_b};
  if (!Begins(code, kLeaRdi) || code.size() < kLeaBytes || !Begins(code.subspan(kLeaBytes), kNoughtToEsi)) {
    return std::nullopt;
  }
  return Led(code, start, kLeaRdi.size());
}

std::optional<VirtualAddress> OnlyJumpX64(Code function, VirtualAddress start) {
  std::optional<VirtualAddress> only;
  for (uint64_t at = 0; at < function.size();) {
    const std::optional<X64Instruction> instruction = DecodeX64(function.subspan(at));
    if (!instruction || instruction->flow == X64Instruction::Flow::kIndirectJump) return std::nullopt;
    at += instruction->bytes;
    if (instruction->flow != X64Instruction::Flow::kJump && instruction->flow != X64Instruction::Flow::kBranch)
      continue;
    const VirtualAddress target{start.value + at + static_cast<uint64_t>(int64_t{instruction->distance})};
    if (target.value - start.value < function.size()) continue;
    if (only && *only != target) return std::nullopt;
    only = target;
  }
  return only;
}

}  // namespace

std::optional<VirtualAddress> StringAllocatorBehind(const ElfImage& image, const EhFrameTable& unwind,
                                                    const RelativeRelocations& relocations, VirtualAddress last_call) {
  // DynamicallyAssignFCallImpl(function, FastAllocateString), whose number is 0
  const bool x64 = image.machine() == ElfMachine::kX64;
  const VirtualAddress behind{last_call.value + (x64 ? kCallBytes : kArm64CallBytes)};
  const auto code = image.BytesFrom(behind);
  if (!code) return std::nullopt;
  const auto function = x64 ? PassedWithZeroX64(*code, behind) : PassedWithZeroArm64(*code, behind, relocations);
  return function && FunctionAt(unwind, *function) ? function : std::nullopt;
}

std::optional<VirtualAddress> OnlyJumpFrom(const ElfImage& image, const EhFrameTable& unwind, VirtualAddress function) {
  const std::optional<FunctionBounds> bounds = FunctionAt(unwind, function);
  const auto code = image.BytesFrom(function);
  if (!bounds || !code) return std::nullopt;
  const uint64_t bytes = bounds->end.value - function.value;
  if (bytes > kMaxFunctionBytes || bytes > code->size()) return std::nullopt;
  const Code whole = code->first(bytes);
  const auto only = image.machine() == ElfMachine::kX64 ? OnlyJumpX64(whole, function) : OnlyJumpArm64(whole, function);
  return only && FunctionAt(unwind, *only) ? only : std::nullopt;
}

}  // namespace clrsampler
