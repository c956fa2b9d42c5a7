#include "formats/runtime/assembly_functions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

// A pattern is a list of words: two hexadecimal digits are that byte, ".." is any byte, "@NAME" is a distance of four
// bytes to the function NAME, "xmm" stands for the stores of eight argument registers, "tls" for the address of a
// variable of the thread, and "end" for the function's end. Without "end" anything may follow.
struct Pattern {
  absl::string_view name;
  std::string words;
};

// PUSH_ARGUMENT_REGISTERS, and the three forms of PROLOG_WITH_TRANSITION_BLOCK: with nothing, one and two words on the
// stack at the entry.
constexpr absl::string_view kPushArguments = " 41 51 41 50 51 52 56 57";
constexpr absl::string_view kFreeStack = " 48 8d a4 24 .. ff ff ff xmm";
constexpr absl::string_view kBlockAddress = " 48 8d bc 24 .. 00 00 00";  // lea rdi, [rsp + the block]

std::string Block() { return absl::StrCat("55 48 89 e5 53 41 57 41 56 41 55 41 54", kPushArguments, kFreeStack); }
std::string BlockBehindOne() {
  return absl::StrCat("53 41 57 41 56 41 55 41 54", kPushArguments, " 48 8b 54 24 58 48 89 6c 24 58 48 8d 6c 24 58",
                      kFreeStack);
}
std::string BlockBehindTwo() {
  return absl::StrCat("41 57 41 56 41 55 41 54", kPushArguments,
                      " 48 8b 4c 24 50 48 89 5c 24 50 48 8b 54 24 58 48 89 6c 24 58 48 8d 6c 24 58", kFreeStack);
}
std::string DynamicHelper(absl::string_view flags) {
  return absl::StrCat(BlockBehindTwo(), " 49 c7 c0 ", flags, " 00 00 00", kBlockAddress,
                      " 48 89 c6 e8 @DynamicHelperWorker 48 85 c0");
}
// NEW_ARRAY_FAST
constexpr absl::string_view kNewArray =
    " 53 41 54 41 55 48 89 fb 49 89 f4 49 89 c5 tls 48 89 c1 48 8b 41 08 48 8b 39 48 29 c7 49 39 fd 77 14 49 01 c5 48 "
    "89 18 44 89 60 08 4c 89 69 08 41 5d 41 5c 5b c3 48 89 df 4c 89 e6 41 5d 41 5c 5b e9 @RhpNewVariableSizeObject";
// The body of RhpNewObject and RhpNewVariableSizeObject, around what they pass to RhpGcAlloc.
std::string Allocate(absl::string_view arguments) {
  constexpr absl::string_view kLeave = " 48 8d 64 24 38 41 5c 41 5d 41 5e 41 5f 5b 5d";
  return absl::StrCat("55 53 41 57 41 56 41 55 41 54 48 8d 64 24 c8 48 8d 4c 24 08 48 89 fb ", arguments,
                      " e8 @RhpGcAlloc 48 85 c0 74 10", kLeave, " c3 48 89 df 31 f6", kLeave,
                      " e9 @RhExceptionHandling_FailedAllocation end");
}

std::vector<Pattern> X64Patterns() {
  return {
      // .NET 8, and since 9.
      {"ThePreStub", absl::StrCat(Block(), kBlockAddress, " 4c 89 d6 e8 @PreStubWorker")},
      {"ThePreStub", absl::StrCat(Block(), " 48 89 04 24", kBlockAddress, " 4c 89 d6 e8 @PreStubWorker 49 89 c2")},
      {"OnCallCountThresholdReachedStub",
       absl::StrCat(Block(), kBlockAddress, " 48 89 c6 e8 @OnCallCountThresholdReached")},
      {"DelayLoad_MethodCall",
       absl::StrCat(BlockBehindTwo(), kBlockAddress, " 48 89 c6 e8 @ExternalMethodFixupWorker")},
      {"DelayLoad_Helper", DynamicHelper("00")},
      {"DelayLoad_Helper_Obj", DynamicHelper("01")},
      {"DelayLoad_Helper_ObjObj", DynamicHelper("03")},
      {"ResolveWorkerAsmStub",
       absl::StrCat(BlockBehindOne(), kBlockAddress, " 4c 89 de 48 89 f1 48 83 e1 07 48 29 ce e8 @VSD_ResolveWorker")},
      {"ResolveWorkerChainLookupAsmStub",
       "48 c7 c0 01 00 00 00 4c 21 d8 58 75 .. 48 8b 40 18 48 85 c0 74 .. 48 3b 10 75 .. 4c 3b 50 08 75 .. 48 .. .. "
       ".. .. .. .. 48 83 2a 01 7c .. 48 8b 40 10 5a"},
      // jithelpers_fastwritebarriers.S and jithelpers_fast.S; the latter before 9 and since.
      {"JIT_CheckedWriteBarrier",
       "48 .. 05 .. .. .. .. 48 3b 38 72 12 48 .. 05 .. .. .. .. 48 3b 38 73 06 ff 25 .. .. .. .. 48 89 37 c3"},
      {"JIT_ByRefWriteBarrier",
       "48 8b 0e 48 89 0f 48 .. 05 .. .. .. .. 48 3b 38 0f 82 .. .. 00 00 48 .. 05 .. .. .. .. 48 3b 38 0f 83 .. .. "
       "00 00 48 .. 05 .. .. .. .. 80 38 00 74 19 48 89 f8 48 c1 e8 0c"},
      {"JIT_ByRefWriteBarrier",
       "48 8b 0e 48 89 0f 48 3b 3d .. .. .. .. 0f 82 .. .. 00 00 48 3b 3d .. .. .. .. 0f 83 .. .. 00 00 80 3d .. .. "
       ".. .. 00 74 16 48 89 f8 48 c1 e8 0c"},
      // Since .NET 10.
      {"RhpNew", "48 c7 c6 00 00 00 00 e9 @RhpNewObject end"},
      {"RhpNewFast",
       "53 48 89 fb tls 8b 53 04 48 8b 70 08 48 8b 38 48 29 f7 48 39 fa 77 0f 48 01 f2 48 89 1e 48 89 50 08 48 89 f0 "
       "5b c3 48 89 df 31 f6 5b e9 @RhpNewObject end"},
      {"RhpNewFinalizable", "be 01 00 00 00 e9 @RhpNewObject end"},
      {"RhpNewObject", Allocate("31 d2")},
      {"RhNewString", absl::StrCat("48 81 fe df ff ff 3f 77 60 48 8d 04 75 1d 00 00 00 48 83 e0 f8", kNewArray,
                                   " 31 f6 e9 @RhExceptionHandling_FailedAllocation end")},
      {"RhpNewArrayFast", absl::StrCat("48 81 fe ff ff ff 7f 77 63 0f b7 07 48 0f af c6 48 8d 40 1f 48 83 e0 f8",
                                       kNewArray, " be 01 00 00 00 e9 @RhExceptionHandling_FailedAllocation end")},
      {"RhpNewPtrArrayFast",
       absl::StrCat("48 81 fe 00 00 00 08 0f 83 @RhpNewArrayFast 67 8d 04 f5 18 00 00 00", kNewArray, " end")},
      {"RhpNewVariableSizeObject", Allocate("48 89 f2 48 31 f6")},
  };
}

struct Target {
  VirtualAddress function;
  absl::string_view name;
};

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
    if (word[0] == '@') return TakeDistance(word.substr(1));
    if (at_ >= code_.size()) return false;
    const auto byte = std::to_integer<uint8_t>(code_[at_++]);
    return word == ".." || byte == Digit(word[0]) * 16 + Digit(word[1]);
  }

  static int Digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

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

  // As a compiler writes it for a library, or as a linker changes it in a program (ELF Handling For Thread-Local
  // Storage, general dynamic to local exec).
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

  std::span<const std::byte> code_;
  VirtualAddress start_;
  size_t at_ = 0;
  bool ends_ = false;
  std::vector<Target> targets_;
};

// What is known of names so far. A name for two functions, and a function with two names, is none.
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
  if (image.machine() != ElfMachine::kX64) return {};
  static const auto& patterns = *new std::vector<Pattern>(X64Patterns());
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
    for (const Pattern& pattern : patterns) {
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
