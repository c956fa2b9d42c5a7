#include "formats/elf/elf_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Linkers make up to some 15 segments. They make up to some 60 sections, unless those of -ffunction-sections are left
// in. The limits keep a hostile count from costing memory: 100,000 sections are 8 MB.
constexpr size_t kMaxSegments = 65'535, kMaxLoadSegments = 256;
constexpr size_t kMaxSections = 100'000;
// Sections and segments may show the same notes again and again. Images have some ten before that of the build; those
// of annobin, which come behind it, are thousands.
constexpr size_t kMaxNotes = 4096;
constexpr size_t kMaxNameBytes = 64 * 1024;
// The end of a text is searched for, which would otherwise be a search through the whole file for each section.
constexpr size_t kMaxSectionNameBytes = 1024, kMaxPathBytes = 4096;
constexpr size_t kMaxDynamicEntries = 4096;
// Linkers make tables with a few symbols a chain. One that lies in a hole of a file has no end.
constexpr size_t kMaxGnuHashChain = 65'536;
constexpr size_t kMaxBuildIdBytes = 64;  // SHA-1 has 20, lld's sha256 form 32

template <typename T>
std::optional<T> ReadStruct(std::span<const std::byte> bytes, uint64_t offset) {
  const auto part = SliceAt(bytes, offset, sizeof(T));
  if (!part) return std::nullopt;
  T value;
  std::memcpy(&value, part->data(), sizeof value);
  return value;
}

uint64_t AlignUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

absl::StatusOr<Elf64_Ehdr> ReadHeader(std::span<const std::byte> bytes) {
  if (!ElfImage::HasMagic(bytes)) return absl::DataLossError("not an ELF file");
  const auto header = ReadStruct<Elf64_Ehdr>(bytes, 0);
  if (!header) return absl::DataLossError("shorter than an ELF header");
  if (header->e_ident[EI_CLASS] == ELFCLASS32) return absl::UnimplementedError("a 32-bit ELF file");
  if (header->e_ident[EI_CLASS] != ELFCLASS64) return absl::DataLossError("ELF file of unknown class");
  if (header->e_ident[EI_DATA] != ELFDATA2LSB) return absl::UnimplementedError("an ELF file that is not little-endian");
  if (header->e_type != ET_EXEC && header->e_type != ET_DYN) {
    return absl::UnimplementedError("an ELF file that is neither executable nor shared library");
  }
  if (header->e_machine != EM_X86_64 && header->e_machine != EM_AARCH64) {
    return absl::UnimplementedError(absl::StrCat("an ELF file for machine ", header->e_machine));
  }
  return *header;
}

// DT_GNU_HASH has no count. It is one more than the highest index that a chain ends with. lld puts other tables between
// symbols and strings, so their distance says nothing.
uint64_t CountByGnuHash(std::span<const std::byte> table) {
  const auto bucket_count = LoadAt<uint32_t>(table, 0), first = LoadAt<uint32_t>(table, 4);
  const auto bloom_count = LoadAt<uint32_t>(table, 8);
  if (!bucket_count || !first || !bloom_count) return 0;
  const uint64_t buckets = 16 + uint64_t{*bloom_count} * 8;
  const uint64_t chains = buckets + uint64_t{*bucket_count} * 4;
  if (chains > table.size() || *bucket_count > ElfSymbolTable::kMaxSymbols) return 0;
  uint32_t highest = 0;
  for (uint64_t i = 0; i < *bucket_count; ++i) {
    highest = std::max(highest, LoadAt<uint32_t>(table, buckets + i * 4).value_or(0));
  }
  if (highest < *first) return *first;
  for (size_t step = 0; step < kMaxGnuHashChain; ++step, ++highest) {
    const auto hash = LoadAt<uint32_t>(table, chains + uint64_t{highest - *first} * 4);
    if (!hash) return 0;
    if ((*hash & 1) != 0) return uint64_t{highest} + 1;
  }
  return 0;
}

// The part of a table that is looked at. All of it is there.
ElfSymbolTable BoundedTable(std::span<const std::byte> symbols, std::span<const std::byte> strings) {
  const size_t count = symbols.size() / sizeof(Elf64_Sym), taken = std::min(count, ElfSymbolTable::kMaxSymbols);
  return {symbols.first(taken * sizeof(Elf64_Sym)), strings, count - taken};
}

}  // namespace

size_t ElfSymbolTable::size() const { return symbols.size() / sizeof(Elf64_Sym); }

ElfSymbol ElfSymbolTable::At(size_t index) const {
  Elf64_Sym raw;
  std::memcpy(&raw, symbols.data() + index * sizeof raw, sizeof raw);
  ElfSymbol symbol;
  symbol.address = {raw.st_value};
  symbol.size = raw.st_size;
  symbol.type = ELF64_ST_TYPE(raw.st_info);
  symbol.binding = ELF64_ST_BIND(raw.st_info);
  symbol.visibility = ELF64_ST_VISIBILITY(raw.st_other);
  symbol.section = raw.st_shndx;
  symbol.name = raw.st_name;
  return symbol;
}

absl::string_view ElfSymbolTable::Name(uint32_t offset) const {
  return TextAt(strings, offset, kMaxNameBytes).value_or(absl::string_view());
}

absl::string_view ElfSymbolTable::NamePrefix(uint32_t offset, size_t max_bytes) const {
  if (offset >= strings.size()) return {};
  const absl::string_view room = AsText(strings.subspan(offset, std::min(max_bytes, strings.size() - offset)));
  return room.substr(0, room.find('\0'));
}

bool ElfImage::HasMagic(std::span<const std::byte> bytes) {
  return bytes.size() >= SELFMAG && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0;
}

absl::StatusOr<ElfImage> ElfImage::Parse(std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(const Elf64_Ehdr header, ReadHeader(bytes));
  ElfImage image(bytes);
  image.machine_ = header.e_machine == EM_X86_64 ? ElfMachine::kX64 : ElfMachine::kArm64;

  image.entry_ = VirtualAddress{header.e_entry};

  // Counts that do not fit their 16 bits stand in section 0.
  uint64_t section_count = header.e_shnum, segment_count = header.e_phnum, names_index = header.e_shstrndx;
  const std::optional<Elf64_Shdr> first =
      header.e_shoff == 0 ? std::nullopt : ReadStruct<Elf64_Shdr>(bytes, header.e_shoff);
  if (first && section_count == 0) section_count = first->sh_size;
  if (first && names_index == SHN_XINDEX) names_index = first->sh_link;
  if (first && segment_count == PN_XNUM) segment_count = first->sh_info;

  RETURN_IF_ERROR(image.ReadSegments(header.e_phoff, segment_count, header.e_phentsize));
  if (first) image.ReadSections(header.e_shoff, section_count, header.e_shentsize, names_index);
  return image;
}

std::optional<VirtualAddress> ElfImage::entry() const {
  if (entry_.value == 0 || !IsExecutable(entry_)) return std::nullopt;
  return entry_;
}

absl::Status ElfImage::ReadSegments(uint64_t offset, uint64_t count, uint64_t entry_bytes) {
  if (count == 0) return absl::DataLossError("ELF file without program headers");
  if (count > kMaxSegments) return absl::DataLossError("ELF file with more program headers than a linker writes");
  if (entry_bytes != sizeof(Elf64_Phdr)) return absl::DataLossError("ELF file with program headers of a wrong size");
  if (!SliceAt(bytes_, offset, count * entry_bytes)) {  // count has at most 32 bits: no overflow
    return absl::DataLossError("ELF file that ends before its program headers do");
  }
  for (uint64_t i = 0; i < count; ++i) {
    const Elf64_Phdr header = *ReadStruct<Elf64_Phdr>(bytes_, offset + i * entry_bytes);
    if (header.p_type == PT_GNU_EH_FRAME) eh_frame_header_ = VirtualAddress{header.p_vaddr};
    if (header.p_type == PT_DYNAMIC) dynamic_ = VirtualAddress{header.p_vaddr};
    if (header.p_type == PT_NOTE) {
      if (const auto part = SliceAt(bytes_, header.p_offset, header.p_filesz)) ReadBuildId(*part, header.p_align);
    }
    if (header.p_type == PT_INTERP) {
      if (const auto part = SliceAt(bytes_, header.p_offset, header.p_filesz)) {
        interpreter_ = TextAt(*part, 0, kMaxPathBytes).value_or(absl::string_view());
      }
    }
    if (header.p_type != PT_LOAD) continue;
    if (segments_.size() == kMaxLoadSegments || header.p_filesz > header.p_memsz ||
        header.p_vaddr + header.p_memsz < header.p_vaddr || header.p_offset + header.p_filesz < header.p_offset) {
      ++ignored_headers_;
      continue;
    }
    segments_.push_back({.offset = {header.p_offset},
                         .address = {header.p_vaddr},
                         .file_bytes = header.p_filesz,
                         .memory_bytes = header.p_memsz,
                         .executable = (header.p_flags & PF_X) != 0});
  }
  std::stable_sort(segments_.begin(), segments_.end(),
                   [](const LoadSegment& a, const LoadSegment& b) { return a.address < b.address; });
  return absl::OkStatus();
}

void ElfImage::ReadSections(uint64_t offset, uint64_t count, uint64_t entry_bytes, uint64_t names_index) {
  if (entry_bytes != sizeof(Elf64_Shdr) || count > kMaxSections || !SliceAt(bytes_, offset, count * entry_bytes)) {
    ++ignored_headers_;
    return;
  }
  std::span<const std::byte> names;
  if (names_index < count) {
    const Elf64_Shdr header = *ReadStruct<Elf64_Shdr>(bytes_, offset + names_index * entry_bytes);
    names = SliceAt(bytes_, header.sh_offset, header.sh_size).value_or(std::span<const std::byte>());
  }
  sections_.reserve(count);
  for (uint64_t i = 1; i < count; ++i) {
    const Elf64_Shdr header = *ReadStruct<Elf64_Shdr>(bytes_, offset + i * entry_bytes);
    ElfSection section;
    section.name = TextAt(names, header.sh_name, kMaxSectionNameBytes).value_or(absl::string_view());
    section.type = header.sh_type;
    section.flags = header.sh_flags;
    section.address = {header.sh_addr};
    section.offset = header.sh_offset;
    section.size = header.sh_size;
    section.link = header.sh_link;
    section.entry_bytes = header.sh_entsize;
    if (section.type == SHT_NOTE) {
      if (const auto part = SectionBytes(section)) ReadBuildId(*part, header.sh_addralign);
    }
    sections_.push_back(section);
  }
}

void ElfImage::ReadBuildId(std::span<const std::byte> notes, uint64_t alignment) {
  const uint64_t step = alignment == 8 ? 8 : 4;
  uint64_t at = 0;
  while (build_id_.empty() && notes_read_ < kMaxNotes) {
    const auto note = ReadStruct<Elf64_Nhdr>(notes, at);
    if (!note) return;
    ++notes_read_;
    const uint64_t name_at = at + sizeof(Elf64_Nhdr);
    const uint64_t content_at = AlignUp(name_at + note->n_namesz, step);
    const auto name = SliceAt(notes, name_at, note->n_namesz);
    const auto content = SliceAt(notes, content_at, note->n_descsz);
    if (!name || !content) return;
    if (note->n_type == NT_GNU_BUILD_ID && AsText(*name) == absl::string_view("GNU\0", 4) && !content->empty() &&
        content->size() <= kMaxBuildIdBytes) {
      build_id_ = *content;
    }
    at = AlignUp(content_at + note->n_descsz, step);
  }
}

VirtualAddress ElfImage::lowest_address() const {
  return segments_.empty() ? VirtualAddress{0} : segments_.front().address;
}

bool ElfImage::IsExecutable(VirtualAddress address) const {
  return std::any_of(segments_.begin(), segments_.end(), [address](const LoadSegment& segment) {
    return segment.executable && address >= segment.address &&
           address.value - segment.address.value < segment.memory_bytes;
  });
}

const ElfSection* ElfImage::FindSection(absl::string_view name) const {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [name](const ElfSection& s) { return s.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

std::optional<std::span<const std::byte>> ElfImage::SectionBytes(const ElfSection& section) const {
  if (section.type == SHT_NOBITS || (section.flags & SHF_COMPRESSED) != 0) return std::nullopt;
  return SliceAt(bytes_, section.offset, section.size);
}

std::optional<std::span<const std::byte>> ElfImage::BytesFrom(VirtualAddress address) const {
  for (const LoadSegment& segment : segments_) {
    if (address < segment.address) continue;
    const uint64_t skip = address.value - segment.address.value;
    if (skip >= segment.file_bytes) continue;
    const uint64_t offset = segment.offset.value + skip;
    if (offset >= bytes_.size()) continue;
    return bytes_.subspan(offset, std::min<uint64_t>(segment.file_bytes - skip, bytes_.size() - offset));
  }
  return std::nullopt;
}

std::optional<DebugLink> ElfImage::debug_link() const {
  const ElfSection* section = FindSection(".gnu_debuglink");
  if (section == nullptr) return std::nullopt;
  const auto content = SectionBytes(*section);
  if (!content) return std::nullopt;
  const auto name = TextAt(*content, 0, kMaxPathBytes);
  if (!name || name->empty()) return std::nullopt;
  const auto crc = LoadAt<uint32_t>(*content, AlignUp(name->size() + 1, 4));
  if (!crc) return std::nullopt;
  return DebugLink{*name, *crc};
}

std::optional<ElfSymbolTable> ElfImage::TableOfType(uint32_t type) const {
  for (const ElfSection& section : sections_) {
    if (section.type != type || section.entry_bytes != sizeof(Elf64_Sym)) continue;
    if (section.link == 0 || section.link > sections_.size()) continue;
    const auto symbols = SectionBytes(section);
    const auto strings = SectionBytes(sections_[section.link - 1]);  // the null section is left out
    if (symbols && strings) return BoundedTable(*symbols, *strings);
  }
  return std::nullopt;
}

std::optional<ElfSymbolTable> ElfImage::symtab() const { return TableOfType(SHT_SYMTAB); }

std::optional<ElfSymbolTable> ElfImage::dynsym() const {
  if (auto table = TableOfType(SHT_DYNSYM)) return table;
  return DynamicTable();
}

std::optional<ElfSymbolTable> ElfImage::DynamicTable() const {
  if (!dynamic_) return std::nullopt;
  const auto entries = BytesFrom(*dynamic_);
  if (!entries) return std::nullopt;
  uint64_t symbols_at = 0, strings_at = 0, strings_bytes = 0, hash_at = 0, gnu_hash_at = 0;
  for (uint64_t at = 0; at < kMaxDynamicEntries * sizeof(Elf64_Dyn); at += sizeof(Elf64_Dyn)) {
    const auto entry = ReadStruct<Elf64_Dyn>(*entries, at);
    if (!entry || entry->d_tag == DT_NULL) break;
    if (entry->d_tag == DT_SYMTAB) symbols_at = entry->d_un.d_ptr;
    if (entry->d_tag == DT_STRTAB) strings_at = entry->d_un.d_ptr;
    if (entry->d_tag == DT_STRSZ) strings_bytes = entry->d_un.d_val;
    if (entry->d_tag == DT_HASH) hash_at = entry->d_un.d_ptr;
    if (entry->d_tag == DT_GNU_HASH) gnu_hash_at = entry->d_un.d_ptr;
  }
  const auto symbols = BytesFrom({symbols_at});
  const auto strings = BytesFrom({strings_at});
  if (symbols_at == 0 || strings_at == 0 || !symbols || !strings || strings->size() < strings_bytes)
    return std::nullopt;
  uint64_t count = 0;
  if (const auto hash = BytesFrom({hash_at}); hash_at != 0 && hash) count = LoadAt<uint32_t>(*hash, 4).value_or(0);
  if (const auto hash = BytesFrom({gnu_hash_at}); count == 0 && gnu_hash_at != 0 && hash) count = CountByGnuHash(*hash);
  const auto all = SliceAt(*symbols, 0, count * sizeof(Elf64_Sym));  // count has at most 33 bits: no overflow
  if (count == 0 || !all) return std::nullopt;
  return BoundedTable(*all, strings->first(strings_bytes));
}

std::string BuildIdText(std::span<const std::byte> build_id) { return absl::BytesToHexString(AsText(build_id)); }

}  // namespace clrsampler
