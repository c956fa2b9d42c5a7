#include "symbols/native_lines/debug_sections.h"

#include <elf.h>

#include <optional>

#include "absl/strings/match.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxName = 64;

bool IsRightKind(std::span<const std::byte> file) {
  const auto ident = SliceAt(file, 0, EI_NIDENT);
  if (!ident) return false;
  const absl::string_view text = AsText(*ident);
  return absl::StartsWith(text, ELFMAG) && text[EI_CLASS] == ELFCLASS64 && text[EI_DATA] == ELFDATA2LSB;
}

template <typename T>
T Field(std::span<const std::byte> headers, size_t index, size_t offset) {
  return LoadAt<T>(headers, index * sizeof(Elf64_Shdr) + offset).value_or(0);
}

}  // namespace

std::vector<DebugSection> ListDebugSections(std::span<const std::byte> file) {
  if (!IsRightKind(file)) return {};
  const auto table = LoadAt<uint64_t>(file, offsetof(Elf64_Ehdr, e_shoff));
  const auto entry_bytes = LoadAt<uint16_t>(file, offsetof(Elf64_Ehdr, e_shentsize));
  const auto count = LoadAt<uint16_t>(file, offsetof(Elf64_Ehdr, e_shnum));
  const auto names_index = LoadAt<uint16_t>(file, offsetof(Elf64_Ehdr, e_shstrndx));
  if (!table || !names_index || entry_bytes != sizeof(Elf64_Shdr) || *names_index >= *count) return {};
  const auto headers = SliceAt(file, *table, uint64_t{*count} * sizeof(Elf64_Shdr));
  if (!headers) return {};
  const auto names = SliceAt(file, Field<uint64_t>(*headers, *names_index, offsetof(Elf64_Shdr, sh_offset)),
                             Field<uint64_t>(*headers, *names_index, offsetof(Elf64_Shdr, sh_size)));
  if (!names) return {};
  std::vector<DebugSection> sections;
  for (size_t i = 0; i < *count; ++i) {
    const auto name = TextAt(*names, Field<uint32_t>(*headers, i, offsetof(Elf64_Shdr, sh_name)), kMaxName);
    if (!name || !absl::StartsWith(*name, ".debug_")) continue;
    const auto flags = Field<uint64_t>(*headers, i, offsetof(Elf64_Shdr, sh_flags));
    sections.push_back(
        {*name, i, *table + i * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_type), (flags & SHF_COMPRESSED) != 0});
  }
  return sections;
}

}  // namespace clrsampler
