#include "clr/memory/stub_code.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "formats/x64/instruction.h"

namespace clrsampler {
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

 private:
  static bool IsArgument(unsigned number) {
    constexpr unsigned kRcx = 1, kRdx = 2, kRsi = 6, kRdi = 7, kR8 = 8, kR9 = 9;
    constexpr unsigned kAll = 1U << kRcx | 1U << kRdx | 1U << kRsi | 1U << kRdi | 1U << kR8 | 1U << kR9;
    return (kAll >> number & 1U) != 0;
  }

  std::span<const std::byte> all_;
  size_t taken_ = 0;
};

struct Match {
  size_t bytes;
  absl::string_view kind;
};

// mov rax, [cell]; dec word ptr [rax]; je +6; jmp [target]; jmp [target when it is zero]. The three cells follow each
// other, as many pages behind the stub as its page has.
std::optional<Match> CallCounting(std::span<const std::byte> bytes) {
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
  return Match{code.taken(), "CallCountingStub"};
}

// mov rax, rsp; mov r11, rdi; moves; mov r10, [r11 + 32]; add r11, 32; jmp r10. 32 is where a delegate has the method.
std::optional<Match> ShuffleThunk(std::span<const std::byte> bytes) {
  Code code(bytes);
  if (!code.Take(0x48, 0x8b, 0xc4, 0x49, 0x89, 0xfb)) return std::nullopt;
  while (!code.Take(0x4d, 0x8b, 0x53, 0x20, 0x49, 0x83, 0xc3, 0x20)) {
    if (!code.TakeMove()) return std::nullopt;
  }
  // With a prefix that changes nothing on .NET 8 and 9.
  if (!code.Take(0x49, 0xff, 0xe2) && !code.Take(0x41, 0xff, 0xe2)) return std::nullopt;
  return Match{code.taken(), "DelegateShuffleThunk"};
}

// Moves of arguments; mov r, INSTANTIATION; or mov r, [rdi]; add rdi, 8. Then mov rax, TARGET; jmp rax.
std::optional<Match> InstantiatingStub(std::span<const std::byte> bytes) {
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
  if (!code.Take(0x48, 0xb8) || !code.TakeValue<uint64_t>() || !code.Take(0xff, 0xe0)) return std::nullopt;
  return Match{code.taken(), unboxes ? "UnboxingStub" : "InstantiatingStub"};
}

// What the runtime has before each stub that it assembles: a count of references, and how long it is. Its code may have
// the description of its moves behind it, two bytes for each end of one.
bool HasHeader(std::span<const std::byte> header, size_t code_bytes) {
  constexpr uint32_t kMaxReferences = 1 << 24, kSizeMask = 0xff'ffff;
  uint32_t references = 0, size_and_flags = 0;
  std::memcpy(&references, header.data(), sizeof references);
  std::memcpy(&size_and_flags, header.data() + sizeof references, sizeof size_and_flags);
  const uint32_t size = size_and_flags & kSizeMask;
  return references != 0 && references < kMaxReferences && size >= code_bytes && size <= 2 * kMaxStubBytes &&
         size % 8 == 0;
}

std::optional<Match> StubAt(std::span<const std::byte> memory, size_t start, uint64_t address) {
  const auto bytes = memory.subspan(start);
  if (address % 8 != 0) return std::nullopt;
  if (const auto match = CallCounting(bytes); match.has_value()) return match;
  if (address % 16 != 0 || start < kStubHeaderBytes) return std::nullopt;
  auto match = ShuffleThunk(bytes);
  if (!match.has_value()) match = InstantiatingStub(bytes);
  if (!match.has_value() || !HasHeader(memory.subspan(start - kStubHeaderBytes), match->bytes)) return std::nullopt;
  return match;
}

std::optional<Match> LinkedStubAt(std::span<const std::byte> memory, size_t start, uint64_t address) {
  if (address % 8 != 0) return std::nullopt;
  const auto bytes = memory.subspan(start);
  const auto match = ShuffleThunk(bytes);
  return match.has_value() ? match : InstantiatingStub(bytes);
}

template <typename MatchAt>
std::optional<StubCode> Around(uint64_t address, std::span<const std::byte> memory, uint64_t begin, MatchAt match_at) {
  if (address < begin || address - begin >= memory.size()) return std::nullopt;
  const size_t inside = address - begin;
  for (size_t back = 0; back <= std::min(inside, kMaxStubBytes - 1); ++back) {
    const size_t start = inside - back;
    const std::optional<Match> match = match_at(memory, start, begin + start);
    if (match.has_value() && match->bytes > back) {
      return StubCode{{begin + start, begin + start + match->bytes}, match->kind};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<StubCode> StubCodeAround(uint64_t address, std::span<const std::byte> memory, uint64_t begin) {
  return Around(address, memory, begin, StubAt);
}

std::optional<StubCode> LinkedStubAround(uint64_t address, std::span<const std::byte> memory, uint64_t begin) {
  return Around(address, memory, begin, LinkedStubAt);
}

}  // namespace clrsampler
