#include "clr/memory/stub_code_x64.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "formats/x64/instruction.h"

namespace clrsampler::x64 {
namespace {

// Instructions from one place on, taken one by one.
class Code {
 public:
  explicit Code(std::span<const std::byte> bytes) : all_(bytes.first(std::min(bytes.size(), kMaxStubBytes))) {}

  size_t taken() const { return taken_; }

  template <typename... Byte>
  bool Take(Byte... bytes) {
    const std::array<std::byte, sizeof...(bytes)> wanted = {static_cast<std::byte>(bytes)...};
    const auto rest = all_.subspan(taken_);
    if (rest.size() < wanted.size() || !std::ranges::equal(rest.first(wanted.size()), wanted)) return false;
    taken_ += wanted.size();
    return true;
  }
  template <typename T>
  std::optional<T> TakeValue() {
    if (all_.size() - taken_ < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, all_.data() + taken_, sizeof value);
    taken_ += sizeof value;
    return value;
  }
  // An instruction that goes on to the next and touches neither the stack pointer, the frame nor memory near ip.
  bool TakeMove() {
    const auto instruction = DecodeX64(all_.subspan(taken_));
    if (!instruction.has_value() || instruction->flow != X64Instruction::Flow::kNext ||
        instruction->stack != X64Instruction::Stack::kSame || instruction->fp != X64Instruction::Fp::kSame ||
        instruction->by_ip) {
      return false;
    }
    taken_ += instruction->bytes;
    return true;
  }
  // mov r64, r64 between registers that arguments come in: rdi, rsi, rdx, rcx, r8, r9.
  bool TakeMoveOfArgument() {
    const auto rest = all_.subspan(taken_);
    if (rest.size() < 3) return false;
    const auto at = [rest](size_t i) { return std::to_integer<unsigned>(rest[i]); };
    const unsigned rex = at(0), mod_rm = at(2);
    if ((rex & 0xfa) != 0x48 || at(1) != 0x89 || (mod_rm & 0xc0) != 0xc0) return false;
    const unsigned from = (mod_rm >> 3 & 7) | (rex & 4) << 1, to = (mod_rm & 7) | (rex & 1) << 3;
    if (!IsArgument(from) || !IsArgument(to)) return false;
    taken_ += 3;
    return true;
  }
  // mov r64, imm64 to such a register.
  bool TakeConstantForArgument() {
    const auto rest = all_.subspan(taken_);
    if (rest.size() < 10) return false;
    const unsigned rex = std::to_integer<unsigned>(rest[0]), opcode = std::to_integer<unsigned>(rest[1]);
    if ((rex & 0xfe) != 0x48 || (opcode & 0xf8) != 0xb8 || !IsArgument((opcode & 7) | (rex & 1) << 3)) return false;
    taken_ += 10;
    return true;
  }
  // mov rax, TARGET; jmp rax.
  bool TakeJump() { return Take(0x48, 0xb8) && TakeValue<uint64_t>() && Take(0xff, 0xe0); }

 private:
  static bool IsArgument(unsigned number) {
    constexpr unsigned kRcx = 1, kRdx = 2, kRsi = 6, kRdi = 7, kR8 = 8, kR9 = 9;
    constexpr unsigned kAll = 1U << kRcx | 1U << kRdx | 1U << kRsi | 1U << kRdi | 1U << kR8 | 1U << kR9;
    return (kAll >> number & 1U) != 0;
  }

  std::span<const std::byte> all_;
  size_t taken_ = 0;
};

}  // namespace

// mov rax, [cell]; dec word ptr [rax]; je +6; jmp [target]; jmp [target when it is zero]. The three cells follow each
// other, as many pages behind the stub as its page has.
std::optional<StubMatch> CallCountingStub(std::span<const std::byte> bytes) {
  Code code(bytes);
  if (!code.Take(0x48, 0x8b, 0x05)) return std::nullopt;
  const auto cell = code.TakeValue<int32_t>();
  const size_t behind_first = code.taken();
  if (!cell || !code.Take(0x66, 0xff, 0x08, 0x74, 0x06, 0xff, 0x25)) return std::nullopt;
  const auto target = code.TakeValue<int32_t>();
  const size_t behind_second = code.taken();
  if (!target || !code.Take(0xff, 0x25)) return std::nullopt;
  const auto last = code.TakeValue<int32_t>();
  if (!last) return std::nullopt;
  const int64_t page = *cell + static_cast<int64_t>(behind_first);
  if (page < 4096 || page > 65536 || !std::has_single_bit(static_cast<uint64_t>(page)) ||
      *target + static_cast<int64_t>(behind_second) != page + 8 ||
      *last + static_cast<int64_t>(code.taken()) != page + 16) {
    return std::nullopt;
  }
  return StubMatch{code.taken(), "CallCountingStub"};
}

// mov rax, rsp; mov r11, rdi; moves; mov r10, [r11 + 32]; add r11, 32; jmp r10. 32 is where a delegate has the method.
std::optional<StubMatch> DelegateShuffleThunk(std::span<const std::byte> bytes) {
  Code code(bytes);
  if (!code.Take(0x48, 0x8b, 0xc4, 0x49, 0x89, 0xfb)) return std::nullopt;
  while (!code.Take(0x4d, 0x8b, 0x53, 0x20, 0x49, 0x83, 0xc3, 0x20)) {
    if (!code.TakeMove()) return std::nullopt;
  }
  // With a prefix that changes nothing on .NET 8 and 9.
  if (!code.Take(0x49, 0xff, 0xe2) && !code.Take(0x41, 0xff, 0xe2)) return std::nullopt;
  return StubMatch{code.taken(), "DelegateShuffleThunk"};
}

// Moves of arguments; mov r, INSTANTIATION; or mov r, [rdi]; add rdi, 8. Then the jump.
std::optional<StubMatch> InstantiatingStub(std::span<const std::byte> bytes) {
  Code code(bytes);
  while (code.TakeMoveOfArgument()) {
  }
  bool unboxes = false;
  if (!code.TakeConstantForArgument()) {
    // The register is the one behind `this` and behind the buffer of a result: rsi or rdx.
    if (!code.Take(0x48, 0x8b, 0x37)) code.Take(0x48, 0x8b, 0x17);
    unboxes = code.Take(0x48, 0x83, 0xc7, 0x08);
    if (!unboxes) return std::nullopt;
  }
  if (!code.TakeJump()) return std::nullopt;
  return StubMatch{code.taken(), unboxes ? "UnboxingStub" : "InstantiatingStub"};
}

std::optional<StubMatch> JumpStub(std::span<const std::byte> bytes) {
  Code code(bytes);
  if (!code.TakeJump()) return std::nullopt;
  return StubMatch{code.taken(), "JumpStub"};
}

}  // namespace clrsampler::x64
