// A bounded view of an ELF image: executable, shared library, vDSO or separate debug file (System V gABI, segments 4
// and 5).
//
// Reads ELF64 little-endian for x86-64 and arm64. Nothing in the file is believed: what does not lie inside the bytes
// is treated as absent. Section headers may be missing or lie; whatever can be had from program headers is taken from
// there.
#ifndef CLRSAMPLER_FORMATS_ELF_ELF_IMAGE_H_
#define CLRSAMPLER_FORMATS_ELF_ELF_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/elf/address_conversion.h"

namespace clrsampler {

enum class ElfMachine : uint8_t { kX64, kArm64 };

struct ElfSection {
  absl::string_view name;  // empty when the name table is unreadable
  uint32_t type = 0;       // SHT_*
  uint64_t flags = 0;      // SHF_*
  VirtualAddress address;
  uint64_t offset = 0;
  uint64_t size = 0;  // bytes in memory; in the file too unless SHT_NOBITS, but not checked: SectionBytes does
  uint32_t link = 0;
  uint64_t entry_bytes = 0;

  bool contains(VirtualAddress at) const { return at >= address && at.value - address.value < size; }
};

struct DebugLink {
  absl::string_view file_name;  // as written in the image: hostile, may hold '/'
  uint32_t crc = 0;             // zlib's crc32 of the whole debug file
};

struct ElfSymbol {
  VirtualAddress address;
  uint64_t size = 0;
  uint8_t type = 0;        // STT_*
  uint8_t binding = 0;     // STB_*
  uint8_t visibility = 0;  // STV_*
  uint16_t section = 0;    // SHN_UNDEF: only referred to
  uint32_t name = 0;       // offset in the table's strings
};

struct ElfSymbolTable {
  // The largest programs known (browsers with .symtab) have some two million. A table may lie in a hole of a file: it
  // takes no space on the disk, and its pages become memory when they are read. 96 MB of a table are.
  static constexpr size_t kMaxSymbols = 4'000'000;

  std::span<const std::byte> symbols;
  std::span<const std::byte> strings;
  size_t left_out = 0;  // symbols behind the first kMaxSymbols

  size_t size() const;
  ElfSymbol At(size_t index) const;  // precondition: index < size()
  // Empty: none, outside the table, or longer than any name can be (64 KiB: a frame's text follows from it).
  absl::string_view Name(uint32_t offset) const;
  // The first `max_bytes` of a name, in a time that does not depend on how long it is.
  absl::string_view NamePrefix(uint32_t offset, size_t max_bytes) const;
};

// Borrows the bytes. Copyable, immutable after Parse; any thread.
class ElfImage {
 public:
  // An error says why the bytes can't be used: kDataLoss for damage, kUnimplemented for a kind of ELF that we don't
  // read.
  static absl::StatusOr<ElfImage> Parse(std::span<const std::byte> bytes);
  // Whether it is worth calling Parse.
  static bool HasMagic(std::span<const std::byte> bytes);

  std::span<const std::byte> bytes() const { return bytes_; }
  ElfMachine machine() const { return machine_; }
  std::span<const LoadSegment> segments() const { return segments_; }  // by address
  std::span<const ElfSection> sections() const { return sections_; }   // in file order, without the null section
  // How many headers were left out because they contradict themselves or are too many.
  size_t ignored_headers() const { return ignored_headers_; }

  std::optional<VirtualAddress> ToAddress(FileOffset offset) const { return ToVirtualAddress(segments_, offset); }
  std::optional<FileOffset> ToOffset(VirtualAddress address) const { return ToFileOffset(segments_, address); }
  VirtualAddress lowest_address() const;  // of the segments; 0 without any
  bool IsExecutable(VirtualAddress address) const;

  const ElfSection* FindSection(absl::string_view name) const;
  // nullopt: no bytes in this file (SHT_NOBITS, as in a debug file), or they are not all inside it.
  std::optional<std::span<const std::byte>> SectionBytes(const ElfSection& section) const;
  // File bytes from `address` to the end of its segment.
  std::optional<std::span<const std::byte>> BytesFrom(VirtualAddress address) const;

  std::span<const std::byte> build_id() const { return build_id_; }  // empty: none; at most 64 bytes
  std::optional<DebugLink> debug_link() const;
  // PT_INTERP: the path of the dynamic loader; empty in most libraries and in static programs.
  absl::string_view interpreter() const { return interpreter_; }
  // Where a program begins; nullopt: not told, as in most libraries, or not in code.
  std::optional<VirtualAddress> entry() const;
  // Where PT_GNU_EH_FRAME points to.
  std::optional<VirtualAddress> eh_frame_header() const { return eh_frame_header_; }

  std::optional<ElfSymbolTable> symtab() const;
  std::optional<ElfSymbolTable> dynsym() const;  // by section header, else by PT_DYNAMIC

 private:
  explicit ElfImage(std::span<const std::byte> bytes) : bytes_(bytes) {}
  absl::Status ReadSegments(uint64_t offset, uint64_t count, uint64_t entry_bytes);
  void ReadSections(uint64_t offset, uint64_t count, uint64_t entry_bytes, uint64_t names_index);
  void ReadBuildId(std::span<const std::byte> notes, uint64_t alignment);
  std::optional<ElfSymbolTable> TableOfType(uint32_t type) const;
  std::optional<ElfSymbolTable> DynamicTable() const;

  std::span<const std::byte> bytes_;
  ElfMachine machine_ = ElfMachine::kX64;
  std::vector<LoadSegment> segments_;
  std::vector<ElfSection> sections_;
  size_t ignored_headers_ = 0;
  size_t notes_read_ = 0;
  std::span<const std::byte> build_id_;
  std::optional<VirtualAddress> eh_frame_header_;
  std::optional<VirtualAddress> dynamic_;
  absl::string_view interpreter_;
  VirtualAddress entry_;
};

// Lower-case hex, as in /usr/lib/debug/.build-id/.
std::string BuildIdText(std::span<const std::byte> build_id);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_ELF_IMAGE_H_
