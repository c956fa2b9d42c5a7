#include "formats/elf/thread_variable.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/elf/elf_exports.h"
#include "formats/elf/relative_relocations.h"

namespace clrsampler {
namespace {

constexpr uint64_t kPointerBytes = sizeof(uint64_t);
constexpr uint64_t kMaxModules = 4096;
// The thread pointer of arm64 points to two words of the C library's, and blocks follow.
constexpr uint64_t kArm64HeadBytes = 16;

ThreadAccess AccessOf(ElfMachine machine, uint32_t relocation) {
  if (machine == ElfMachine::kX64) {
    if (relocation == R_X86_64_TPOFF64) return ThreadAccess::kOffset;
    if (relocation == R_X86_64_TLSDESC) return ThreadAccess::kDescriptor;
    return relocation == R_X86_64_DTPMOD64 ? ThreadAccess::kIndex : ThreadAccess::kNone;
  }
  if (relocation == R_AARCH64_TLS_TPREL) return ThreadAccess::kOffset;
  if (relocation == R_AARCH64_TLSDESC) return ThreadAccess::kDescriptor;
  return relocation == R_AARCH64_TLS_DTPMOD ? ThreadAccess::kIndex : ThreadAccess::kNone;
}

class SlotSearch {
 public:
  SlotSearch(const ElfImage& image, absl::string_view name, ThreadVariable& found)
      : image_(image), symbols_(image.dynsym()), name_(name), found_(found) {}

  void Run() {
    for (const ElfSection& section : image_.sections()) {
      if ((section.flags & SHF_ALLOC) == 0 || section.type != SHT_RELA) continue;
      if (const auto bytes = image_.SectionBytes(section)) Read(*bytes);
    }
  }

 private:
  void Read(std::span<const std::byte> bytes) {
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= bytes.size(); at += sizeof(Elf64_Rela)) {
      if (budget_-- == 0) return;
      const uint64_t info = *LoadAt<uint64_t>(bytes, at + 8);
      const ThreadAccess access = AccessOf(image_.machine(), static_cast<uint32_t>(info));
      if (access == ThreadAccess::kNone) continue;
      Take(access, *LoadAt<uint64_t>(bytes, at), info >> 32, *LoadAt<uint64_t>(bytes, at + 16));
    }
  }

  // The simplest way counts, and one that is for this variable before one for the whole block.
  void Take(ThreadAccess access, uint64_t slot, uint64_t symbol, uint64_t addend) {
    const bool named = symbol != 0;
    if (named) {
      if (addend != 0 || !symbols_ || symbol >= symbols_->size() ||
          symbols_->NamePrefix(symbols_->At(symbol).name, name_.size() + 1) != name_) {
        return;
      }
    } else if (access != ThreadAccess::kIndex && addend != found_.in_block) {
      return;
    }
    const bool module_only = access == ThreadAccess::kIndex && !named;
    if (found_.access != ThreadAccess::kNone &&
        (module_only > found_.module_only || (module_only == found_.module_only && access >= found_.access))) {
      return;
    }
    found_.access = access;
    found_.slot = {slot};
    found_.module_only = module_only;
  }

  const ElfImage& image_;
  const std::optional<ElfSymbolTable> symbols_;
  const absl::string_view name_;
  ThreadVariable& found_;
  size_t budget_ = kMaxRelocations;
};

// nullopt: none, or what it says makes no sense. ElfImage has judged where the headers are.
std::optional<ThreadSegment> ThreadSegmentOf(std::span<const std::byte> bytes) {
  const auto offset = LoadAt<uint64_t>(bytes, offsetof(Elf64_Ehdr, e_phoff));
  const auto count = LoadAt<uint16_t>(bytes, offsetof(Elf64_Ehdr, e_phnum));
  if (!offset || !count) return std::nullopt;
  for (uint64_t i = 0; i < *count; ++i) {
    const uint64_t at = *offset + i * sizeof(Elf64_Phdr);
    const auto type = LoadAt<uint32_t>(bytes, at);
    if (!type) return std::nullopt;
    if (*type != PT_TLS) continue;
    const auto memory_bytes = LoadAt<uint64_t>(bytes, at + offsetof(Elf64_Phdr, p_memsz));
    const auto alignment = LoadAt<uint64_t>(bytes, at + offsetof(Elf64_Phdr, p_align));
    const auto address = LoadAt<uint64_t>(bytes, at + offsetof(Elf64_Phdr, p_vaddr));
    if (!memory_bytes || !alignment || !address || *memory_bytes > ThreadSegment::kMostBytes ||
        *alignment > ThreadSegment::kMostBytes || (*alignment & (*alignment - 1)) != 0) {
      return std::nullopt;
    }
    const ThreadSegment segment{*memory_bytes, std::max<uint64_t>(*alignment, 1)};
    // Linkers differ about where a block is whose first byte is not aligned.
    return *address % segment.alignment == 0 ? std::optional(segment) : std::nullopt;
  }
  return std::nullopt;
}

absl::Status Undecided() { return absl::UnavailableError("the loader has not placed it yet"); }

bool IsOffset(ElfMachine machine, int64_t offset) {
  if (offset % static_cast<int64_t>(kPointerBytes) != 0) return false;
  constexpr auto kMost = static_cast<int64_t>(ThreadSegment::kMostBytes);
  if (machine == ElfMachine::kX64) return offset < 0 && offset >= -kMost;
  return offset >= static_cast<int64_t>(kArm64HeadBytes) && offset < kMost;
}

absl::StatusOr<ThreadPlace> PlaceInProgram(const ThreadVariable& variable, ElfMachine machine) {
  const uint64_t bytes = variable.of->memory_bytes, alignment = variable.of->alignment;
  const auto up = [&](uint64_t value) { return (value + alignment - 1) & ~(alignment - 1); };
  const uint64_t offset =
      machine == ElfMachine::kX64 ? variable.in_block - up(bytes) : up(kArm64HeadBytes) + variable.in_block;
  ThreadPlace place{.offset = static_cast<int64_t>(offset)};
  if (!IsOffset(machine, place.offset)) return absl::DataLossError("its place in the program makes no sense");
  return place;
}

absl::StatusOr<ThreadPlace> PlaceInVector(uint64_t module, uint64_t offset, ElfMachine machine, ThreadVectorKind kind) {
  if (module == 0) return Undecided();
  if (module > kMaxModules || offset > ThreadSegment::kMostBytes || offset % kPointerBytes != 0) {
    return absl::DataLossError("the loader's words about it make no sense");
  }
  ThreadPlace place{.offset = static_cast<int64_t>(offset), .module = static_cast<uint32_t>(module)};
  switch (kind) {
    case ThreadVectorKind::kGlibc:  // entries of two words; the one before the first has their number
      place.vector = machine == ElfMachine::kX64 ? 8 : 0;
      place.count = -16;
      place.slot = place.module * 16;
      return place;
    case ThreadVectorKind::kMusl:  // entries of one word, the first of which is their number
      place.vector = machine == ElfMachine::kX64 ? 8 : -8;
      place.count = 0;
      place.slot = place.module * 8;
      return place;
    case ThreadVectorKind::kUnknown:
      break;
  }
  return absl::UnimplementedError("it is in a block of its own, and the C library is neither glibc nor musl");
}

}  // namespace

std::optional<ThreadVariable> FindThreadVariable(const ElfImage& image, absl::string_view name) {
  const std::optional<ElfSymbol> symbol = ElfExports(image).Find(name);
  if (!symbol || symbol->type != STT_TLS) return std::nullopt;
  ThreadVariable found{.in_block = symbol->address.value, .of = ThreadSegmentOf(image.bytes())};
  SlotSearch(image, name, found).Run();
  return found;
}

absl::StatusOr<ThreadPlace> PlaceOf(const ThreadVariable& variable, ElfMachine machine, uint64_t bias, bool is_program,
                                    ThreadVectorKind vector, const ReadWord& read) {
  if (!variable.of || variable.in_block > variable.of->memory_bytes ||
      variable.of->memory_bytes - variable.in_block < kPointerBytes) {
    return absl::DataLossError("it lies outside of the image's thread-local variables");
  }
  if (is_program) return PlaceInProgram(variable, machine);
  if (variable.access == ThreadAccess::kNone) {
    return absl::UnimplementedError("no relocation says how the library reaches it");
  }
  const uint64_t slot = variable.slot.value + bias;
  const std::optional<uint64_t> first = read(slot);
  const std::optional<uint64_t> second = variable.access == ThreadAccess::kOffset ? 0 : read(slot + kPointerBytes);
  if (!first || !second) return absl::UnavailableError("the loader's words about it can't be read");
  if (*first == 0) return Undecided();
  const auto static_place = [&](uint64_t word) { return ThreadPlace{.offset = static_cast<int64_t>(word)}; };
  if (variable.access == ThreadAccess::kOffset) {
    if (!IsOffset(machine, static_cast<int64_t>(*first))) return absl::DataLossError("its distance makes no sense");
    return static_place(*first);
  }
  if (variable.access == ThreadAccess::kIndex) {
    return PlaceInVector(*first, variable.module_only ? variable.in_block : *second, machine, vector);
  }
  if (*second == 0) return Undecided();
  if (IsOffset(machine, static_cast<int64_t>(*second))) return static_place(*second);
  const std::optional<uint64_t> module = read(*second), offset = read(*second + kPointerBytes);
  if (!module || !offset) return absl::UnavailableError("the loader's words about it can't be read");
  return PlaceInVector(*module, *offset, machine, vector);
}

}  // namespace clrsampler
