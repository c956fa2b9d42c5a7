// The two numbers by which code in an image goes, kept apart by type, and the way between them.
//
// They are often equal, which is why mixing them up goes unnoticed: in the shipped libcoreclr.so (lld, x64) they are
// 0x1000 apart, and 0x2000 or 0x3000 in its later segments.
#ifndef CLRSAMPLER_FORMATS_ELF_ADDRESS_CONVERSION_H_
#define CLRSAMPLER_FORMATS_ELF_ADDRESS_CONVERSION_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

namespace clrsampler {

// A position in the image file: what mappings are given in, and what a uprobe takes.
struct FileOffset {
  uint64_t value = 0;
  friend constexpr auto operator<=>(FileOffset, FileOffset) = default;
};

// An address in the image's own tables: symbols, unwind tables, relocations. Before relocation, so not an address of a
// process.
struct VirtualAddress {
  uint64_t value = 0;
  friend constexpr auto operator<=>(VirtualAddress, VirtualAddress) = default;
};

// A PT_LOAD program header. No sum of these fields overflows; file_bytes <= memory_bytes.
struct LoadSegment {
  FileOffset offset;
  VirtualAddress address;
  uint64_t file_bytes = 0;
  uint64_t memory_bytes = 0;
  bool executable = false;
};

// An offset may lie in two segments, when an image gives the same file page to two of them. The executable one is
// meant, since callers ask about code.
std::optional<VirtualAddress> ToVirtualAddress(std::span<const LoadSegment> segments, FileOffset offset);
std::optional<FileOffset> ToFileOffset(std::span<const LoadSegment> segments, VirtualAddress address);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_ADDRESS_CONVERSION_H_
