#include "formats/elf/plt.h"

#include <elf.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

// A look-up ends after this many. libLLVM-14 has 355,000, and a hostile image could name one huge table many times.
constexpr size_t kMaxRelocations = 2'000'000;

// "jmp *slot(%rip)" is ff 25 and a displacement from the next instruction. It may follow endbr64 or a bnd prefix.
std::optional<VirtualAddress> SlotOfX64(std::span<const std::byte> stub, VirtualAddress start) {
  for (uint64_t at = 0; at + 6 <= stub.size() && at <= 5; ++at) {
    if (stub[at] != std::byte{0xff} || stub[at + 1] != std::byte{0x25}) continue;
    const int64_t displacement = *LoadAt<int32_t>(stub, at + 2);
    return VirtualAddress{start.value + at + 6 + static_cast<uint64_t>(displacement)};
  }
  return std::nullopt;
}

// "adrp x16, page" then "ldr x17, [x16, #low]", perhaps after "bti c".
std::optional<VirtualAddress> SlotOfArm64(std::span<const std::byte> stub, VirtualAddress start) {
  for (uint64_t at = 0; at + 8 <= stub.size() && at <= 4; at += 4) {
    const uint32_t adrp = *LoadAt<uint32_t>(stub, at), ldr = *LoadAt<uint32_t>(stub, at + 4);
    if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211) continue;
    const uint64_t page_bits = (adrp >> 29 & 3) | (adrp >> 5 & 0x7ffff) << 2;  // 21 bits, signed
    const uint64_t pages = (page_bits ^ 0x100000) - 0x100000;
    const uint64_t low = uint64_t{ldr >> 10 & 0xfff} * 8;
    return VirtualAddress{((start.value + at) & ~uint64_t{0xfff}) + (pages << 12) + low};
  }
  return std::nullopt;
}

absl::string_view SymbolOfSlot(const ElfImage& image, VirtualAddress slot) {
  const std::optional<ElfSymbolTable> symbols = image.dynsym();
  if (!symbols) return {};
  size_t budget = kMaxRelocations;
  const std::span<const ElfSection> sections = image.sections();
  for (auto section = sections.rbegin(); section != sections.rend(); ++section) {  // .rela.plt stands behind .rela.dyn
    if (section->type != SHT_RELA || section->entry_bytes != sizeof(Elf64_Rela)) continue;
    const auto rows = image.SectionBytes(*section);
    if (!rows) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= rows->size(); at += sizeof(Elf64_Rela)) {
      if (budget-- == 0) return {};
      if (LoadAt<uint64_t>(*rows, at) != slot.value) continue;
      const uint64_t symbol = *LoadAt<uint64_t>(*rows, at + 8) >> 32;
      if (symbol == 0 || symbol >= symbols->size()) return {};
      return symbols->Name(symbols->At(symbol).name);
    }
  }
  return {};
}

}  // namespace

std::optional<PltStub> FindPltStub(const ElfImage& image, VirtualAddress address) {
  const ElfSection* section = image.FindSectionAt(address);
  if (section == nullptr || (section->flags & SHF_EXECINSTR) == 0) return std::nullopt;
  if (!absl::StartsWith(section->name, ".plt") && section->name != ".iplt") return std::nullopt;
  PltStub stub;
  stub.section = section->name;
  const bool is_x64 = image.machine() == ElfMachine::kX64;
  uint64_t stub_bytes = section->entry_bytes == 8 || section->entry_bytes == 16 ? section->entry_bytes : 16;
  uint64_t header_bytes = 0;
  if (!is_x64) {
    // The lazy-binding header takes 32 bytes; stubs are 16, or 24 with branch protection.
    header_bytes = section->name == ".plt" ? 32 : 0;
    if (section->entry_bytes == 24) stub_bytes = 24;
  }
  const uint64_t inside = address.value - section->address.value;
  stub.start = section->address;
  if (inside < header_bytes) return stub;
  stub.start.value += header_bytes + (inside - header_bytes) / stub_bytes * stub_bytes;
  const auto bytes = image.BytesFrom(stub.start);
  if (!bytes) return stub;
  const auto code = bytes->first(std::min<uint64_t>(stub_bytes, bytes->size()));
  const std::optional<VirtualAddress> slot = is_x64 ? SlotOfX64(code, stub.start) : SlotOfArm64(code, stub.start);
  if (slot) stub.target = SymbolOfSlot(image, *slot);
  return stub;
}

}  // namespace clrsampler
