#include "formats/elf/plt.h"

#include <elf.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

// No more are read. libLLVM-14 has 355,000, and a hostile image could name one huge table many times.
constexpr size_t kMaxRowsRead = 2'000'000;
// So many of them are kept: 4 MB.
constexpr size_t kMaxRowsKept = 1 << 18;
// Linkers make four sections of stubs at most.
constexpr size_t kMaxStubSections = 64;

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

// Whether the loader writes the address of a symbol, as a stub jumps to it.
bool IsOfSlot(uint32_t type, ElfMachine machine) {
  if (machine == ElfMachine::kX64) return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}

}  // namespace

std::vector<ElfSection> PltStubs::SectionsOf(const ElfImage& image) {
  constexpr uint64_t kCode = SHF_ALLOC | SHF_EXECINSTR;
  std::vector<ElfSection> sections;
  for (const ElfSection& section : image.sections()) {
    if ((section.flags & kCode) != kCode || sections.size() >= kMaxStubSections) continue;
    if (absl::StartsWith(section.name, ".plt") || section.name == ".iplt") sections.push_back(section);
  }
  std::stable_sort(sections.begin(), sections.end(),
                   [](const ElfSection& a, const ElfSection& b) { return a.address < b.address; });
  sections.shrink_to_fit();
  return sections;
}

std::vector<PltStubs::Slot> PltStubs::SlotsOf(const ElfImage& image) {
  std::vector<Slot> slots;
  size_t budget = kMaxRowsRead;
  const std::span<const ElfSection> sections = image.sections();
  for (auto section = sections.rbegin(); section != sections.rend(); ++section) {  // .rela.plt stands behind .rela.dyn
    if (section->type != SHT_RELA || section->entry_bytes != sizeof(Elf64_Rela)) continue;
    const auto rows = image.SectionBytes(*section);
    if (!rows) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= rows->size() && budget > 0; at += sizeof(Elf64_Rela), --budget) {
      const uint64_t info = *LoadAt<uint64_t>(*rows, at + 8);
      if (!IsOfSlot(static_cast<uint32_t>(info), image.machine()) || slots.size() >= kMaxRowsKept) continue;
      slots.push_back({*LoadAt<uint64_t>(*rows, at), static_cast<uint32_t>(info >> 32)});
    }
  }
  std::stable_sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.address < b.address; });
  slots.shrink_to_fit();
  return slots;
}

absl::string_view PltStubs::SymbolOf(const ElfImage& image, VirtualAddress slot) {
  if (!calls_) calls_ = Calls{SlotsOf(image), image.dynsym()};
  const auto& [slots, symbols] = *calls_;
  const auto found = std::lower_bound(slots.begin(), slots.end(), slot.value,
                                      [](const Slot& one, uint64_t address) { return one.address < address; });
  if (found == slots.end() || found->address != slot.value || !symbols) return {};
  if (found->symbol == 0 || found->symbol >= symbols->size()) return {};
  return symbols->Name(symbols->At(found->symbol).name);
}

std::optional<PltStub> PltStubs::Find(const ElfImage& image, VirtualAddress address) {
  if (!sections_) sections_ = SectionsOf(image);
  const auto above = std::upper_bound(sections_->begin(), sections_->end(), address,
                                      [](VirtualAddress at, const ElfSection& one) { return at < one.address; });
  if (above == sections_->begin() || !(above - 1)->contains(address)) return std::nullopt;
  const ElfSection* const section = &*(above - 1);
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
  if (slot) stub.target = SymbolOf(image, *slot);
  return stub;
}

}  // namespace clrsampler
