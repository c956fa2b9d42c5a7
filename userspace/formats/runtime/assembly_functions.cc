#include "formats/runtime/assembly_functions.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "formats/byte_reader.h"
#include "formats/runtime/assembly_patterns.h"

namespace clrsampler {
namespace {

struct Target {
  VirtualAddress function;
  absl::string_view name;
};

// The bits of an instruction of arm64 that say where it leads: of b and bl, or of all others that patterns name.
uint32_t DistanceBits(uint32_t instruction) {
  return (instruction & 0x7c000000) == 0x14000000 ? 0x03ffffff : 0x00ffffe0;
}

// Reads the words of a pattern along code.
class Matcher {
 public:
  Matcher(std::span<const std::byte> code, VirtualAddress start) : code_(code), start_(start) {}

  bool Matches(absl::string_view words) {
    for (const absl::string_view word : absl::StrSplit(words, ' ')) {
      if (!Take(word)) return false;
    }
    return true;
  }
  const std::vector<Target>& targets() const { return targets_; }
  // Whether the pattern is one of a function with so many bytes.
  bool Fits(uint64_t bytes) const { return ends_ ? at_ == bytes : at_ <= bytes; }

 private:
  bool Take(absl::string_view word) {
    if (word == "end") return ends_ = true;
    if (word == "xmm") return TakeStores();
    if (word == "tls") return TakeThreadVariable();
    if (word == "tlsdesc") return TakeThreadVariableArm64();
    if (word[0] == '@') return TakeDistance(word.substr(1));
    if (word[0] == 'x') return TakeAddressArm64(word);
    if (word.size() >= kInstructionDigits) return TakeInstruction(word);
    if (at_ >= code_.size()) return false;
    const auto byte = std::to_integer<uint8_t>(code_[at_++]);
    return word == ".." || byte == Digit(word[0]) * 16 + Digit(word[1]);
  }

  static uint32_t Digit(char c) { return static_cast<uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10); }

  std::optional<uint32_t> NextInstruction() {
    const std::optional<uint32_t> instruction = LoadAt<uint32_t>(code_, at_);
    if (instruction) at_ += sizeof(uint32_t);
    return instruction;
  }

  bool TakeMasked(uint32_t mask, uint32_t value) {
    const std::optional<uint32_t> instruction = NextInstruction();
    return instruction && (*instruction & mask) == value;
  }

  bool TakeInstruction(absl::string_view word) {
    uint32_t expected = 0;
    for (const char digit : word.substr(0, kInstructionDigits)) expected = expected << 4 | Digit(digit);
    const uint32_t distance_bits = word.size() > kInstructionDigits ? DistanceBits(expected) : 0;
    const std::optional<uint32_t> instruction = NextInstruction();
    if (!instruction || (*instruction & ~distance_bits) != expected) return false;
    if (word.size() <= kInstructionDigits + 1) return true;
    // Signed, in instructions: its highest bit is shifted to that of the word, and back.
    const int above = std::countl_zero(distance_bits), below = std::countr_zero(distance_bits);
    const int32_t distance = static_cast<int32_t>((*instruction & distance_bits) << above) >> (above + below);
    const uint64_t here = start_.value + at_ - sizeof(uint32_t);
    targets_.push_back({{here + static_cast<uint64_t>(int64_t{distance} * 4)}, word.substr(kInstructionDigits + 1)});
    return true;
  }

  // "x12=": adrp x12; add x12, x12, offset, or nop; adr x12.
  bool TakeAddressArm64(absl::string_view word) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(word.substr(1, word.size() - 2), &number)) return false;
    const size_t before = at_;
    if (TakeMasked(0x9f00001f, 0x90000000 | number) && TakeMasked(0xffc003ff, 0x91000000 | number << 5 | number)) {
      return true;
    }
    at_ = before;
    return TakeMasked(~0U, kNop) && TakeMasked(0x9f00001f, 0x10000000 | number);
  }

  // adrp x0; ldr x3, [x0, offset]; add x0, x0, offset; blr x3, or movz x0, high; movk x0, low; nop; nop (ELF for the
  // Arm 64-bit Architecture, relaxation of TLS descriptors to local exec).
  bool TakeThreadVariableArm64() {
    const size_t before = at_;
    if (TakeMasked(0x9f00001f, 0x90000000) && TakeMasked(0xffc003ff, 0xf9400003) &&
        TakeMasked(0xffc003ff, 0x91000000) && TakeMasked(~0U, 0xd63f0060)) {
      return true;
    }
    at_ = before;
    return TakeMasked(0xffe0001f, 0xd2a00000) && TakeMasked(0xffe0001f, 0xf2800000) && TakeMasked(~0U, kNop) &&
           TakeMasked(~0U, kNop);
  }

  bool TakeBytes(absl::string_view bytes) {
    if (code_.size() - at_ < bytes.size()) return false;
    const auto there = code_.subspan(at_, bytes.size());
    at_ += bytes.size();
    return std::ranges::equal(there, std::as_bytes(std::span(bytes)));
  }

  bool Skip(size_t bytes) {
    if (code_.size() - at_ < bytes) return false;
    at_ += bytes;
    return true;
  }

  // movdqa [rsp + D], xmm0 to xmm7, with D in no byte, one or four.
  bool TakeStores() {
    for (int number = 0; number < 8; ++number) {
      if (!TakeBytes("\x66\x0f\x7f") || at_ >= code_.size()) return false;
      const int operand = std::to_integer<int>(code_[at_++]);
      if ((operand & 0x3f) != (number << 3 | 4) || !TakeBytes("\x24")) return false;
      const int form = operand >> 6;  // of a 3 there is no memory
      if (form == 3 || !Skip(form == 0 ? 0 : form == 1 ? 1 : 4)) return false;
    }
    return true;
  }

  // The forms of a thread-local access: as a compiler writes it for a library, and as a linker changes it in a program
  // (ELF Handling For Thread-Local Storage, general dynamic to local exec).
  bool TakeThreadVariable() {
    const size_t before = at_;
    if (TakeBytes("\x66\x48\x8d\x3d") && Skip(4) && TakeBytes("\x66\x66\x48\xe8") && Skip(4)) return true;
    at_ = before;
    return TakeBytes(absl::string_view("\x64\x48\x8b\x04\x25\0\0\0\0\x48\x8d\x80", 12)) && Skip(4);
  }

  bool TakeDistance(absl::string_view name) {
    const std::optional<int32_t> distance = LoadAt<int32_t>(code_, at_);
    if (!distance) return false;
    at_ += sizeof(int32_t);
    targets_.push_back({{start_.value + at_ + static_cast<uint64_t>(int64_t{*distance})}, name});
    return true;
  }

  static constexpr size_t kInstructionDigits = 8;
  static constexpr uint32_t kNop = 0xd503201f;  // of arm64

  std::span<const std::byte> code_;
  VirtualAddress start_;
  size_t at_ = 0;
  bool ends_ = false;
  std::vector<Target> targets_;
};

// The names that are known so far. A name for two functions is dropped, and so is a function with two names.
class Names {
 public:
  void Add(absl::string_view name, VirtualAddress function) {
    const auto [place, fresh_name] = functions_.try_emplace(name, function);
    if (!fresh_name && place->second != function) wrong_.push_back(name);
    const auto [holder, fresh_function] = names_.try_emplace(function.value, name);
    if (fresh_function || holder->second == name) return;
    wrong_.push_back(name);
    wrong_.push_back(holder->second);
  }

  std::vector<AssemblyFunction> Take() const {
    std::vector<AssemblyFunction> taken;
    for (const auto& [name, function] : functions_) {
      if (std::ranges::find(wrong_, name) == wrong_.end()) taken.push_back({function, name});
    }
    std::ranges::sort(taken, {}, [](const AssemblyFunction& one) { return one.start.value; });
    return taken;
  }

 private:
  absl::flat_hash_map<absl::string_view, VirtualAddress> functions_;
  absl::flat_hash_map<uint64_t, absl::string_view> names_;
  std::vector<absl::string_view> wrong_;
};

}  // namespace

std::vector<AssemblyFunction> FindAssemblyFunctions(const ElfImage& image, const EhFrameTable& unwind) {
  static const auto& x64 = *new std::vector<AssemblyPattern>(X64AssemblyPatterns());
  static const auto& arm64 = *new std::vector<AssemblyPattern>(Arm64AssemblyPatterns());
  const std::vector<AssemblyPattern>& patterns = image.machine() == ElfMachine::kX64 ? x64 : arm64;
  const auto bounds_of = [&](VirtualAddress address) -> std::optional<FunctionBounds> {
    const std::optional<FunctionBounds> bounds = unwind.Find(address);
    if (!bounds || !bounds->end_known || bounds->start != address) return std::nullopt;
    return bounds;
  };
  Names names;
  for (size_t i = 0; i < unwind.size(); ++i) {
    const VirtualAddress start = unwind.FunctionStart(i);
    const auto code = image.BytesFrom(start);
    if (!code || !image.IsExecutable(start)) continue;
    for (const AssemblyPattern& pattern : patterns) {
      Matcher matcher(*code, start);
      if (!matcher.Matches(pattern.words)) continue;
      const std::optional<FunctionBounds> bounds = bounds_of(start);
      if (!bounds || !matcher.Fits(bounds->end.value - start.value)) continue;
      names.Add(pattern.name, start);
      for (const Target& target : matcher.targets()) {
        if (bounds_of(target.function)) names.Add(target.name, target.function);
      }
    }
  }
  return names.Take();
}

}  // namespace clrsampler
