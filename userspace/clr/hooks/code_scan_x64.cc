#include "clr/hooks/code_scan_x64.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <initializer_list>
#include <iterator>

#include "absl/strings/string_view.h"
#include "formats/byte_reader.h"

namespace clrsampler::x64 {
namespace {

constexpr uint8_t kCall = 0xe8, kJump = 0xe9;
constexpr uint8_t kRipOperandMask = 0xc7, kRipOperand = 0x05;  // of ModRM: rip plus a distance
constexpr size_t kBranchBytes = 5, kDistanceBytes = 4;

// Reads forward through one expected sequence of instructions. An instruction that does not fit fails it for good.
class Expect {
 public:
  Expect(std::span<const std::byte> code, VirtualAddress start) : code_(code), start_(start) {}

  Expect& Bytes(std::initializer_list<uint8_t> bytes) {
    for (const uint8_t byte : bytes) {
      if (at_ >= code_.size() || static_cast<uint8_t>(code_[at_]) != byte) ok_ = false;
      ++at_;
    }
    return *this;
  }
  bool TryBytes(std::initializer_list<uint8_t> bytes) {
    Expect tried = *this;
    if (!tried.Bytes(bytes).ok_) return false;
    *this = tried;
    return true;
  }
  Expect& Any(int8_t& byte) {
    const auto value = LoadAt<int8_t>(code_, at_);
    ok_ = ok_ && value.has_value();
    byte = value.value_or(0);
    ++at_;
    return *this;
  }
  // A distance and what it leads to from the next instruction, which `more` bytes separate from the distance.
  Expect& Relative(VirtualAddress& target, size_t more = 0) {
    const auto distance = LoadAt<int32_t>(code_, at_);
    ok_ = ok_ && distance.has_value();
    at_ += kDistanceBytes;
    target.value = start_.value + at_ + more + static_cast<uint64_t>(int64_t{distance.value_or(0)});
    return *this;
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && at_ == code_.size(); }

 private:
  std::span<const std::byte> code_;
  VirtualAddress start_;
  size_t at_ = 0;
  bool ok_ = true;
};

// The bytes of a block that can begin an instruction that is looked for, a bit each.
constexpr size_t kBlock = 64;
struct Candidates {
  uint64_t branches = 0;
  uint64_t operands = 0;
};

// Eight bytes that are 0 or 1, as bits.
uint64_t BitsOf(const uint8_t* marks) {
  uint64_t word;
  std::memcpy(&word, marks, sizeof word);
  return word * 0x0102040810204080 >> 56;
}

// One byte in 22 is a candidate. No processor can predict their places, so there is no branch here. The first loop
// becomes vector instructions.
Candidates CandidatesIn(const uint8_t* bytes) {
  static_assert(kCall == 0xe8 && kJump == 0xe9);
  uint8_t branches[kBlock], operands[kBlock];
  for (size_t i = 0; i < kBlock; ++i) branches[i] = (bytes[i] & 0xfe) == kCall;
  for (size_t i = 0; i < kBlock; ++i) operands[i] = (bytes[i] & kRipOperandMask) == kRipOperand;
  Candidates found;
  for (size_t i = 0; i < kBlock; i += 8) {
    found.branches |= BitsOf(branches + i) << i;
    found.operands |= BitsOf(operands + i) << i;
  }
  return found;
}

// The bytes of a constant behind the address. nullopt: the instruction is not one that is looked for.
std::optional<size_t> ConstantBytes(uint8_t opcode, uint8_t operand) {
  switch (opcode) {
    case 0x38:  // cmp
    case 0x39:
    case 0x3b:
    case 0x89:  // mov
    case 0x8b:
    case 0x8d:  // lea
    case 0xff:  // call, jmp, push, inc, dec
      return 0;
    case 0x80:  // cmp and others, with a constant of a byte
    case 0x83:
      return 1;
    case 0xf6:  // test has a constant, not and neg have none
      return (operand >> 3 & 7) < 2 ? 1 : 0;
    default:
      return std::nullopt;
  }
}

// compileMethod(this, comp, info, flags, entry, bytes) of src/coreclr/jit/ee_il_dll.cpp in compiled form. '?' stands
// for any digit.
struct KnownCompileMethod {
  absl::string_view code;
  JitReturnSite done;  // the last jump: if the stack's guard is not as it was, go and die
};
constexpr KnownCompileMethod kCompileMethods[] = {
    // .NET 8.0.0 to 10.0.14
    {"55 4889e5 4157 4156 4154 53 4883ec50"            // the frame
     "4d89ce 4c89c3 4989d7 4989f4"                     // r14 = bytes, rbx = entry, r15 = info, r12 = comp
     "64488b042528000000 488945d8"                     // [rbp-40] = the stack's guard
     "0f57c0 0f2945a0 48c745b000000000"                // 24 bytes at rbp-96 are cleared
     "488b06 488d75a0 4c89e7 ba18000000 ff90????0000"  // comp->getJitFlags(rbp-96, 24)
     "488b45b0 0f2845a0 0f2945c0 488945d0"             // the flags are copied to rbp-64
     "48c7459800000000 498b3f 498b7708 488d45c0"       //
     "4c8d4598 4c89e2 4c89f9 4d89f1 6a00 50"           //
     "e8???????? 4883c410"                             // eax = jitNativeCode(...)
     "85c0 7507 488b4d98 48890b"                       // when it is 0: *entry = [rbp-104]
     "64488b0c2528000000 483b4dd8"                     // is the guard as it was?
     "750d"                                            // if not, go and die: the jump in question
     "4883c450 5b 415c 415e 415f 5d c3"                //
     "e8????????",
     {0xa0, CompileForm::kEntryInRegister}},
    // .NET 11.0.0
    {"55 4889e5 4157 4156 4155 4154 53 4883ec58"       // the frame
     "4d89ce 4c894580 4989d7 4989f4"                   // r14 = bytes, [rbp-128] = entry, r15 = info, r12 = comp
     "64488b042528000000 488945d0"                     // [rbp-48] = the stack's guard
     "31db 4c8d6d90 49895d10 0f57c0 410f294500"        // rbx = 0; 24 bytes at rbp-112 are cleared
     "488b06 4889f7 4c89ee ba18000000 ff90????0000"    // comp->getJitFlags(rbp-112, 24)
     "498b4510 410f284500 4c8d55b0 410f2902 49894210"  // the flags are copied to rbp-80
     "4c8d4588 498918 498b3f 498b7708"                 //
     "4c89e2 4c89f9 4d89f1 53 4152"                    //
     "e8???????? 4883c410"                             // eax = jitNativeCode(...)
     "85c0 750b 488b4d88 488b5580 48890a"              // when it is 0: *entry = [rbp-120]
     "64488b0c2528000000 483b4dd0"                     // is the guard as it was?
     "750f"                                            // if not, go and die: the jump in question
     "4883c458 5b 415c 415d 415e 415f 5d c3"           //
     "e8????????",
     {0xa5, CompileForm::kEntryOnFrame}}};

// Whether `code` is the whole of `pattern`, and nothing more.
bool Matches(std::span<const std::byte> code, absl::string_view pattern) {
  size_t digits = 0;
  for (const char wanted : pattern) {
    if (wanted == ' ') continue;
    const size_t at = digits / 2;
    if (at >= code.size()) return false;
    const unsigned byte = static_cast<unsigned>(code[at]);
    const unsigned digit = digits % 2 == 0 ? byte >> 4 : byte & 15;
    if (wanted != '?' && wanted != "0123456789abcdef"[digit]) return false;
    ++digits;
  }
  return digits == 2 * code.size();
}

}  // namespace

void ScanReferences(std::span<const std::byte> code, VirtualAddress start, CodeReferenceSink found) {
  if (code.size() < kBranchBytes) return;
  const uint8_t* const bytes = reinterpret_cast<const uint8_t*>(code.data());
  const auto relative = [&](size_t at, size_t more) {
    int32_t distance;
    std::memcpy(&distance, bytes + at, sizeof distance);
    return VirtualAddress{start.value + at + kDistanceBytes + more + static_cast<uint64_t>(int64_t{distance})};
  };
  const size_t places = code.size() - kBranchBytes + 1;
  uint8_t last[kBlock] = {};
  for (size_t block = 0; block < places; block += kBlock) {
    const size_t count = std::min(kBlock, places - block);
    if (count < kBlock) std::memcpy(last, bytes + block, count);  // 0 begins nothing
    const Candidates candidates = CandidatesIn(count < kBlock ? last : bytes + block);
    for (uint64_t left = candidates.branches; left != 0; left &= left - 1) {
      const size_t at = block + static_cast<size_t>(std::countr_zero(left));
      found({CodeReference::Kind::kBranch, relative(at + 1, 0)});
    }
    for (uint64_t left = candidates.operands; left != 0; left &= left - 1) {
      const size_t at = block + static_cast<size_t>(std::countr_zero(left));
      if (at == 0) continue;
      if (const auto constant = ConstantBytes(bytes[at - 1], bytes[at])) {
        found({CodeReference::Kind::kData, relative(at + 1, *constant)});
      }
    }
  }
}

bool BeginsWithFrame(std::span<const std::byte> code) { return Expect(code, {}).Bytes({0x55, 0x48, 0x89, 0xe5}).ok(); }

std::optional<JumpThunk> DecodeJumpThunk(std::span<const std::byte> code, VirtualAddress start) {
  Expect next(code, start);
  if (!next.Bytes({0x55, 0x48, 0x89, 0xe5}).ok()) return std::nullopt;
  JumpThunk thunk;
  struct Move {
    std::initializer_list<uint8_t> low, whole;
  };
  // Integer arguments of the psABI: rdi, rsi, rdx, rcx, r8, r9.
  static const Move kMoves[] = {{{0x89, 0xf7}, {0x48, 0x89, 0xf7}},
                                {{0x89, 0xd6}, {0x48, 0x89, 0xd6}},
                                {{0x89, 0xca}, {0x48, 0x89, 0xca}},
                                {{0x44, 0x89, 0xc1}, {0x4c, 0x89, 0xc1}},
                                {{0x45, 0x89, 0xc8}, {0x4d, 0x89, 0xc8}}};
  VirtualAddress constant;
  if (next.TryBytes({0xbf})) {  // mov edi, n
    next.Relative(constant);
    thunk.arguments.push_back('c');
    if (!next.Bytes({0x5d, kJump}).Relative(thunk.target).done()) return std::nullopt;
    return thunk;
  }
  for (const Move& move : kMoves) {
    if (next.TryBytes(move.low)) {
      thunk.arguments.push_back('4');
    } else if (next.TryBytes(move.whole)) {
      thunk.arguments.push_back('8');
    } else {
      break;
    }
  }
  if (!next.Bytes({0x5d, kJump}).Relative(thunk.target).done()) return std::nullopt;
  return thunk;
}

std::optional<VirtualAddress> CopiedGuid(std::span<const std::byte> code, VirtualAddress start) {
  VirtualAddress guid;
  Expect next(code, start);
  next.Bytes({0x55, 0x48, 0x89, 0xe5});
  if (!next.TryBytes({0x0f, 0x28, 0x05})) next.Bytes({0x0f, 0x10, 0x05});  // movaps or movups xmm0, [rip+n]
  next.Relative(guid).Bytes({0x0f, 0x11, 0x06, 0x5d, 0xc3});               // movups [rsi], xmm0; pop rbp; ret
  if (!next.done()) return std::nullopt;
  return guid;
}

std::optional<JitReturnSite> ReturnOfCompileMethod(std::span<const std::byte> code) {
  for (const KnownCompileMethod& known : kCompileMethods) {
    if (Matches(code, known.code)) return known.done;
  }
  return std::nullopt;
}

std::optional<GcSettings> SettingsOfPostGc(std::span<const std::byte> code, VirtualAddress start,
                                           VirtualAddress gc_done, VirtualAddress diag_gc_end) {
  std::optional<GcSettings> settings;
  for (size_t at = 0; at < code.size(); ++at) {
    Expect next(code.subspan(at), {start.value + at});
    VirtualAddress condemned, done, index, again, reason, concurrent, end;
    int8_t local = 0, local_again = 0;
    if (!next.Bytes({0x8b, 0x3d}).ok()) continue;
    next.Relative(condemned);                          // mov edi, [condemned]
    next.Bytes({kCall}).Relative(done);                //
    next.Bytes({0x48, 0x8b, 0x05}).Relative(index);    // mov rax, [gc_index], which is volatile
    next.Bytes({0x48, 0x89, 0x45}).Any(local);         //
    next.Bytes({0x48, 0x8b, 0x7d}).Any(local_again);   // mov rdi, the same
    next.Bytes({0x8b, 0x35}).Relative(again);          // mov esi, [condemned]
    next.Bytes({0x8b, 0x15}).Relative(reason);         // mov edx, [reason]
    next.Bytes({0x31, 0xc9});                          // xor ecx, ecx
    next.Bytes({0x83, 0x3d}).Relative(concurrent, 1);  // cmp dword [concurrent], 0
    next.Bytes({0x00, 0x0f, 0x95, 0xc1});              // setne cl
    next.Bytes({kCall}).Relative(end);
    if (!next.ok() || done != gc_done || end != diag_gc_end || local != local_again) continue;
    const auto field = [&](uint64_t offset) { return VirtualAddress{index.value + offset}; };
    if (settings || condemned != field(GcSettings::kCondemned) || again != condemned ||
        reason != field(GcSettings::kReason) || concurrent != field(GcSettings::kConcurrent)) {
      return std::nullopt;
    }
    settings = GcSettings{index};
  }
  return settings;
}

}  // namespace clrsampler::x64
