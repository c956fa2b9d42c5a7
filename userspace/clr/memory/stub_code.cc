#include "clr/memory/stub_code.h"

#include <algorithm>
#include <cstring>

#include "clr/memory/stub_code_arm64.h"
#include "clr/memory/stub_code_x64.h"

namespace clrsampler {
namespace {

struct Matchers {
  using Match = std::optional<StubMatch> (*)(std::span<const std::byte>);
  Match call_counting, shuffle, instantiating, jump;
  uint64_t linked_alignment;  // of stubs with a header
};

const Matchers& MatchersOf(ElfMachine machine) {
  static constexpr Matchers kX64 = {x64::CallCountingStub, x64::DelegateShuffleThunk, x64::InstantiatingStub,
                                    x64::JumpStub, 16};
  static constexpr Matchers kArm64 = {arm64::CallCountingStub, arm64::DelegateShuffleThunk, arm64::InstantiatingStub,
                                      arm64::JumpStub, 8};
  return machine == ElfMachine::kArm64 ? kArm64 : kX64;
}

// The runtime puts a header before each stub that it assembles: a count of references, and the stub's length. The code
// may have the description of its moves behind it, two bytes for each end of one.
bool HasHeader(std::span<const std::byte> header, size_t code_bytes) {
  constexpr uint32_t kMaxReferences = 1 << 24, kSizeMask = 0xff'ffff;
  uint32_t references = 0, size_and_flags = 0;
  std::memcpy(&references, header.data(), sizeof references);
  std::memcpy(&size_and_flags, header.data() + sizeof references, sizeof size_and_flags);
  const uint32_t size = size_and_flags & kSizeMask;
  return references != 0 && references < kMaxReferences && size >= code_bytes && size <= 2 * kMaxStubBytes &&
         size % 8 == 0;
}

std::optional<StubMatch> LinkedStubAt(const Matchers& of, std::span<const std::byte> bytes) {
  const auto match = of.shuffle(bytes);
  return match.has_value() ? match : of.instantiating(bytes);
}

std::optional<StubMatch> StubAt(const Matchers& of, std::span<const std::byte> memory, size_t start, uint64_t address) {
  const auto bytes = memory.subspan(start);
  if (const auto match = of.call_counting(bytes); match.has_value()) return match;
  if (address % of.linked_alignment != 0 || start < kStubHeaderBytes) return std::nullopt;
  const auto match = LinkedStubAt(of, bytes);
  if (!match.has_value() || !HasHeader(memory.subspan(start - kStubHeaderBytes), match->bytes)) return std::nullopt;
  return match;
}

// `match_at` finds the code that begins at a place inside of `memory`, and takes the address of that place.
template <uint64_t kAlignment = 8, typename MatchAt>
std::optional<StubCode> Around(uint64_t address, std::span<const std::byte> memory, uint64_t begin, MatchAt match_at) {
  if (address < begin || address - begin >= memory.size()) return std::nullopt;
  const size_t inside = address - begin;
  for (size_t back = address % kAlignment; back <= std::min(inside, kMaxStubBytes - 1); back += kAlignment) {
    const size_t start = inside - back;
    const std::optional<StubMatch> match = match_at(start, begin + start);
    if (match.has_value() && match->bytes > back) {
      return StubCode{{begin + start, begin + start + match->bytes}, match->kind};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<StubCode> StubCodeAround(ElfMachine machine, uint64_t address, std::span<const std::byte> memory,
                                       uint64_t begin) {
  const Matchers& of = MatchersOf(machine);
  return Around(address, memory, begin, [&](size_t start, uint64_t at) { return StubAt(of, memory, start, at); });
}

std::optional<StubCode> LinkedStubAround(ElfMachine machine, uint64_t address, std::span<const std::byte> memory,
                                         uint64_t begin) {
  const Matchers& of = MatchersOf(machine);
  return Around(address, memory, begin,
                [&](size_t start, uint64_t) { return LinkedStubAt(of, memory.subspan(start)); });
}

std::optional<StubCode> JumpStubAround(ElfMachine machine, uint64_t address, std::span<const std::byte> memory,
                                       uint64_t begin) {
  const Matchers& of = MatchersOf(machine);
  return Around<1>(address, memory, begin, [&](size_t start, uint64_t) { return of.jump(memory.subspan(start)); });
}

}  // namespace clrsampler
