#include "clr/hooks/code_scan_arm64.h"

#include <array>
#include <iterator>

#include "formats/byte_reader.h"

namespace clrsampler::arm64 {
namespace {

constexpr size_t kInstructionBytes = 4;
constexpr uint32_t kRegisters = 32;
constexpr uint32_t kReturn = 0xd65f03c0;
// Compilers put a few instructions between adrp and the instruction that completes the address.
constexpr size_t kMaxDistanceOfPage = 8;

uint32_t At(std::span<const std::byte> code, size_t index) {
  return LoadAt<uint32_t>(code, index * kInstructionBytes).value_or(0);  // 0 is no instruction (udf)
}

uint32_t Target(uint32_t instruction) { return instruction & 31; }     // Rd, Rt
uint32_t Base(uint32_t instruction) { return instruction >> 5 & 31; }  // Rn
uint64_t Immediate12(uint32_t instruction) { return instruction >> 10 & 0xfff; }

bool IsBranch(uint32_t instruction) { return (instruction & 0x7c000000) == 0x14000000; }  // b, bl
bool IsCall(uint32_t instruction) { return (instruction & 0xfc000000) == 0x94000000; }    // bl

VirtualAddress BranchTarget(uint32_t instruction, VirtualAddress at) {
  const uint64_t words = instruction & 0x3ffffff;
  const uint64_t extended = (words ^ 0x2000000) - 0x2000000;
  return {at.value + extended * kInstructionBytes};
}

bool IsAdrp(uint32_t instruction) { return (instruction & 0x9f000000) == 0x90000000; }

// Linkers turn one of adrp and add into this where the address is near. The other one becomes a nop.
bool IsAdr(uint32_t instruction) { return (instruction & 0x9f000000) == 0x10000000; }

uint64_t AdrDistance(uint32_t instruction) {
  const uint64_t bits = (instruction >> 29 & 3) | (instruction >> 5 & 0x7ffff) << 2;  // 21 bits, signed
  return (bits ^ 0x100000) - 0x100000;
}
uint64_t AdrpPage(uint32_t instruction, VirtualAddress at) {
  return (at.value & ~uint64_t{0xfff}) + (AdrDistance(instruction) << 12);
}
VirtualAddress AdrAddress(uint32_t instruction, VirtualAddress at) { return {at.value + AdrDistance(instruction)}; }

// The number that add or ldr adds to its base register. nullopt: another instruction.
std::optional<uint64_t> AddedOffset(uint32_t instruction) {
  switch (instruction & 0xffc00000) {
    case 0x91000000:  // add x, x, #n
      return Immediate12(instruction);
    case 0xb9400000:  // ldr w, [x, #n]
      return Immediate12(instruction) * 4;
    case 0xf9400000:  // ldr x, [x, #n]
      return Immediate12(instruction) * 8;
    case 0x3dc00000:  // ldr q, [x, #n]
      return Immediate12(instruction) * 16;
    default:
      return std::nullopt;
  }
}

bool IsStoreOfFrameRecord(uint32_t instruction) {  // stp x29, x30, [sp, #n]
  return (instruction & 0xffe07fff) == 0xa9007bfd;
}
bool IsPushOfFrameRecord(uint32_t instruction) {  // stp x29, x30, [sp, #-n]!
  return (instruction & 0xffe07fff) == 0xa9a07bfd;
}
bool IsLoweringOfSp(uint32_t instruction) {  // sub sp, sp, #n
  return (instruction & 0xff8003ff) == 0xd10003ff && Immediate12(instruction) != 0;
}

// mov x<to>, x<from> or the same with w; 8, 4, or 0 when it is another instruction.
int MovedBytes(uint32_t instruction, uint32_t to, uint32_t from) {
  const uint32_t low = 0x2a0003e0 | from << 16 | to;
  if (instruction == low) return 4;
  return instruction == (low | 0x80000000) ? 8 : 0;
}

// compileMethod(this, comp, info, flags, entry, bytes) of src/coreclr/jit/ee_il_dll.cpp in compiled form. Each
// instruction has the bits that count. Distances, pages and numbers of slots are left out.
constexpr uint32_t kAll = 0xffffffff, kAnyPage = 0x9f00001f, kAnyOffset = 0xffc003ff, kAnyDistance = 0xfc000000;
struct Masked {
  uint32_t bits, mask;
};
constexpr Masked kCompileMethod[] = {
    {0xd10203ff, kAll},       {0xa9057bfd, kAll},         {0xa90657f6, kAll}, {0xa9074ff4, kAll},
    {0x910143fd, kAll},                                                        // the frame
    {0x90000008, kAnyPage},                                                    //
    {0xaa0103f6, kAll},       {0xaa0203f5, kAll},                              // x22 = comp, x21 = info
    {0xf9400108, kAnyOffset},                                                  //
    {0xaa1603e0, kAll},       {0x52800302, kAll},                              //
    {0xaa0503f4, kAll},       {0xaa0403f3, kAll},                              // x20 = bytes, x19 = entry
    {0xf9400108, kAll},       {0xf81f83a8, kAll},                              // [x29-8] = the stack's guard
    {0xf9400028, kAll},       {0x910043e1, kAll},                              //
    {0xa9017fff, kAll},       {0xf90013ff, kAll},                              // 24 bytes at sp+16 are cleared
    {0xf9400108, kAnyOffset}, {0xd63f0100, kAll},                              // comp->getJitFlags(sp+16, 24)
    {0xa94006a0, kAll},       {0x910023e4, kAll},                              //
    {0x3dc007e0, kAll},       {0xf94013e8, kAll},         {0xd10083a6, kAll},  //
    {0xaa1603e2, kAll},       {0xaa1503e3, kAll},         {0xaa1403e5, kAll}, {0xaa1f03e7, kAll},  //
    {0x3c9e03a0, kAll},       {0xf81f03a8, kAll},                              // the flags are copied to x29-32
    {0xf90007ff, kAll},       {0x94000000, kAnyDistance},                      // w0 = jitNativeCode(...)
    {0x35000060, kAll},       {0xf94007e8, kAll},         {0xf9000268, kAll},  // when it is 0: *entry = [sp+8]
    {0x90000008, kAnyPage},   {0xf9400108, kAnyOffset},                        //
    {0xf85f83a9, kAll},       {0xf9400108, kAll},         {0xeb09011f, kAll},  // is the guard as it was?
    {0x540000c1, kAll},  // if not, go and die: the jump in question
    {0xa9474ff4, kAll},       {0xa94657f6, kAll},         {0xa9457bfd, kAll}, {0x910203ff, kAll},
    {kReturn, kAll},          {0x94000000, kAnyDistance}};
constexpr uint64_t kCompileMethodJump = 0xa8;

// compileMethod of 11.0.0, into which jitNativeCode is compiled, by a digest of all its instructions. It begins with
//   sub sp, sp, #0x1e0 ... add x29, sp, #0x180; str x4, [sp, #72]; mov x22, x1; mov x21, x2; mov x23, x5
//   str x23, [sp, #64]
// and its flags are at x29-80. Nothing else changes x21, x22 and those two words. Its end:
//   ldr x8, [x8]; cmp x8, x9; b.ne; mov w0, w27; ...
constexpr size_t kCompileMethod11Bytes = 0x940;
constexpr uint64_t kCompileMethod11Digest = 0xaba7643da3618aa0;
constexpr uint64_t kCompileMethod11Jump = 0x7f8;

// FNV-1a of all bits except the distances to other functions and to data.
uint64_t Digest(std::span<const std::byte> code) {
  uint64_t digest = 0xcbf29ce484222325;
  std::array<size_t, kRegisters> page_until{};  // of registers that hold the page of some data
  for (size_t i = 0; i < code.size() / kInstructionBytes; ++i) {
    uint32_t instruction = At(code, i);
    if (IsCall(instruction)) {
      instruction &= 0xfc000000;
    } else if (IsAdrp(instruction)) {
      page_until[Target(instruction)] = i + kMaxDistanceOfPage;
      instruction &= kAnyPage;
    } else if (AddedOffset(instruction) && i < page_until[Base(instruction)]) {
      instruction &= kAnyOffset;
    }
    for (int byte = 0; byte < 4; ++byte) digest = (digest ^ (instruction >> 8 * byte & 0xff)) * 0x100000001b3;
  }
  return digest;
}

}  // namespace

void ScanReferences(std::span<const std::byte> code, VirtualAddress start, CodeReferenceSink found) {
  struct Page {
    uint64_t address = 0;
    size_t valid_until = 0;
  };
  std::array<Page, kRegisters> pages;
  const size_t count = code.size() / kInstructionBytes;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t instruction = At(code, i);
    const VirtualAddress at{start.value + i * kInstructionBytes};
    if (IsBranch(instruction)) {
      found({CodeReference::Kind::kBranch, BranchTarget(instruction, at)});
    } else if (IsAdr(instruction)) {
      found({CodeReference::Kind::kData, AdrAddress(instruction, at)});
      pages[Target(instruction)].valid_until = 0;
    } else if (IsAdrp(instruction)) {
      pages[Target(instruction)] = {AdrpPage(instruction, at), i + kMaxDistanceOfPage};
    } else if (const auto offset = AddedOffset(instruction)) {
      const Page page = pages[Base(instruction)];
      if (i < page.valid_until) found({CodeReference::Kind::kData, {page.address + *offset}});
      // A q register is none of these.
      if ((instruction & 0x3f000000) != 0x3d000000) pages[Target(instruction)].valid_until = 0;
    }
  }
}

bool BeginsWithFrame(std::span<const std::byte> code) {
  constexpr uint32_t kPaciasp = 0xd503233f;
  constexpr size_t kMaxBeforeRecord = 6;
  const size_t first = At(code, 0) == kPaciasp ? 1 : 0;
  if (IsPushOfFrameRecord(At(code, first))) return true;
  if (!IsLoweringOfSp(At(code, first))) return false;
  for (size_t i = first + 1; i <= first + kMaxBeforeRecord; ++i) {
    if (IsStoreOfFrameRecord(At(code, i))) return true;
  }
  return false;
}

std::optional<JumpThunk> DecodeJumpThunk(std::span<const std::byte> code, VirtualAddress start) {
  constexpr uint32_t kArguments = 8;  // x0 to x7
  JumpThunk thunk;
  size_t i = 0;
  if ((At(code, 0) & 0xffe0001f) == 0x52800000) {  // mov w0, #n
    thunk.arguments.push_back('c');
    ++i;
  }
  for (; i + 1 < kArguments && thunk.arguments != "c"; ++i) {
    const uint32_t to = static_cast<uint32_t>(i);
    const int bytes = MovedBytes(At(code, i), to, to + 1);
    if (bytes == 0) break;
    thunk.arguments.push_back(bytes == 4 ? '4' : '8');
  }
  const uint32_t jump = At(code, i);
  if (!IsBranch(jump) || IsCall(jump) || code.size() != (i + 1) * kInstructionBytes) return std::nullopt;
  thunk.target = BranchTarget(jump, {start.value + i * kInstructionBytes});
  return thunk;
}

std::optional<VirtualAddress> CopiedGuid(std::span<const std::byte> code, VirtualAddress start) {
  const uint32_t adrp = At(code, 0);
  if (!IsAdrp(adrp)) return std::nullopt;
  uint64_t address = AdrpPage(adrp, start);
  size_t i = 1;
  if (const uint32_t add = At(code, i);  // may be part of the load
      (add & 0xffc00000) == 0x91000000 && Target(add) == Target(adrp) && Base(add) == Target(adrp)) {
    address += Immediate12(add);
    ++i;
  }
  const uint32_t load = At(code, i), store = At(code, i + 1);
  const bool loads = (load & 0xffc00000) == 0x3dc00000 && Base(load) == Target(adrp);       // ldr q, [x, #n]
  const bool stores = (store & 0xffffffe0) == 0x3d800020 && Target(store) == Target(load);  // str q, [x1]
  if (!loads || !stores || At(code, i + 2) != kReturn || code.size() != (i + 3) * kInstructionBytes)
    return std::nullopt;
  return VirtualAddress{address + Immediate12(load) * 16};
}

std::optional<JitReturnSite> ReturnOfCompileMethod(std::span<const std::byte> code) {
  if (code.size() == kCompileMethod11Bytes && Digest(code) == kCompileMethod11Digest) {
    return JitReturnSite{kCompileMethod11Jump, CompileForm::kEntryOnFrame};
  }
  if (code.size() != std::size(kCompileMethod) * kInstructionBytes) return std::nullopt;
  for (size_t i = 0; i < std::size(kCompileMethod); ++i) {
    if ((At(code, i) & kCompileMethod[i].mask) != kCompileMethod[i].bits) return std::nullopt;
  }
  return JitReturnSite{kCompileMethodJump, CompileForm::kEntryInRegister};
}

std::optional<GcSettings> SettingsOfPostGc(std::span<const std::byte> code, VirtualAddress start,
                                           VirtualAddress gc_done, VirtualAddress diag_gc_end) {
  // Both calls take their arguments through one register that holds the address of the settings.
  constexpr size_t kMaxBetweenCalls = 16, kMaxPrologue = 64;
  const auto load = [](uint32_t to, uint64_t offset) {  // ldr w<to>, [x0, #offset]
    return 0xb9400000 | static_cast<uint32_t>(offset / 4) << 10 | to;
  };
  const size_t count = code.size() / kInstructionBytes;
  for (size_t i = 1; i < count && i < kMaxPrologue; ++i) {
    const auto is_call = [&](size_t index, VirtualAddress target) {
      const VirtualAddress at{start.value + index * kInstructionBytes};
      return IsCall(At(code, index)) && BranchTarget(At(code, index), at) == target;
    };
    if (!is_call(i, gc_done)) continue;
    // The register, and the address it was given.
    std::optional<uint32_t> base;
    for (size_t k = i; k-- > 0 && !base;) {
      if ((At(code, k) & ~(uint32_t{31} << 5)) == load(0, GcSettings::kCondemned)) base = Base(At(code, k));
    }
    if (!base) return std::nullopt;
    std::optional<uint64_t> page, address;
    for (size_t k = 0; k < i; ++k) {
      const uint32_t instruction = At(code, k);
      const VirtualAddress at{start.value + k * kInstructionBytes};
      if (IsAdrp(instruction) && Target(instruction) == *base) {
        page = AdrpPage(instruction, at);
      } else if (IsAdr(instruction) && Target(instruction) == *base) {
        if (page || address) return std::nullopt;
        address = AdrAddress(instruction, at).value;
      } else if ((instruction & 0xffc00000) == 0x91000000 && Target(instruction) == *base) {
        if (Base(instruction) != *base || !page || address) return std::nullopt;
        address = *page + Immediate12(instruction);
      }
    }
    if (!address) return std::nullopt;
    const uint32_t through = *base << 5;
    bool index = false, condemned = false, reason = false, concurrent = false;
    for (size_t k = i + 1; k < count && k - i <= kMaxBetweenCalls; ++k) {
      const uint32_t instruction = At(code, k);
      if (is_call(k, diag_gc_end)) {
        if (!index || !condemned || !reason || !concurrent) return std::nullopt;
        return GcSettings{{*address}};
      }
      if (IsBranch(instruction)) return std::nullopt;
      const uint32_t any = instruction & ~uint32_t{31};
      // ldar x, [x], since it is volatile; or ldr x, [x]
      index |= any == (0xc8dffc00 | through) || any == (0xf9400000 | through);
      condemned |= instruction == (load(1, GcSettings::kCondemned) | through);
      reason |= instruction == (load(2, GcSettings::kReason) | through);
      concurrent |= any == (load(0, GcSettings::kConcurrent) | through);
    }
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace clrsampler::arm64
