// The parts that the three MIP files have in common: their header, and in which of three layouts they are written.
//
// Machine IR Profiles: .mipraw is the counter section of an instrumented program as it was dumped, .mipmap says which
// function and which blocks each counter belongs to, .mip is the profile that both make. Three layouts call themselves
// version 7 or 8; docs/mip.md has each offset, what the format's text leaves open, and how it is settled. All numbers
// are little-endian.
#ifndef CLRSAMPLER_FORMATS_MIP_MIP_LAYOUT_H_
#define CLRSAMPLER_FORMATS_MIP_MIP_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// The things that were counted: bits of the header's ProfileType. Coverage and counts are different records, so a
// program is instrumented for one of them.
inline constexpr uint32_t kMipFunctionCoverage = 0x1;
inline constexpr uint32_t kMipBlockCoverage = 0x2;  // besides one of the others
inline constexpr uint32_t kMipTimestamp = 0x4;
inline constexpr uint32_t kMipCallCount = 0x8;
inline constexpr uint32_t kMipReturnAddress = 0x10;                    // never defined further; refused
inline constexpr uint32_t kMipCounts = kMipTimestamp | kMipCallCount;  // one record holds both
inline constexpr uint32_t kMipKnownKinds = kMipFunctionCoverage | kMipBlockCoverage | kMipCounts;

// "Function Coverage, Block Coverage".
std::string MipKindsText(uint32_t kinds);

// Whether a file can be of these kinds: known ones, and either coverage or counts. The error begins with `where`.
absl::Status CheckMipKinds(uint32_t kinds, absl::string_view where);

enum class MipFileType : uint8_t { kRaw, kMap, kProfile };

enum class MipLayout : uint8_t {
  kDocumented,  // the format's text: a header of 32 bytes; addresses of 32 bits and the names' bytes in a .mip
  kLlvm,        // its implementation: addresses of 64 bits and the number of names
  kOld,         // before: a header of 24 bytes; addresses of 32 bits and the number of names; maps of 32 bits
};

// One row for each layout: what differs.
struct MipLayoutTraits {
  absl::string_view name;  // for people, and for --mip-layout
  uint32_t header_bytes;
  bool wide_addresses;        // in records of a .mip
  bool names_counted;         // the number before the names of a .mip counts names, not bytes
  size_t fixed_record_bytes;  // of a .mip's record, with CallEdgeCount and without blocks
};
const MipLayoutTraits& TraitsOf(MipLayout layout);

inline constexpr uint16_t kMipVersion = 8;

// The hint of errors of damaged files.
inline constexpr char kMipCutHint[] = "was the file written to its end, and copied as a whole?";

struct MipHeader {
  uint16_t version = kMipVersion;
  MipFileType type = MipFileType::kProfile;
  bool is_32_bit = false;  // pointers of the program, and with them PC offsets in a map
  uint32_t kinds = 0;      // kMip* bits
  uint32_t module_hash = 0;
  int64_t raw_section_offset = 0;  // maps only: address of the raw section minus that of this header
  // The layout as far as a header tells: kDocumented stands for kLlvm, too.
  MipLayout layout = MipLayout::kDocumented;
  uint32_t data_offset = 32;  // where the data begins
};

// Whether the bytes begin like a MIP file of any type.
bool HasMipMagic(std::span<const std::byte> bytes);

// Errors say the offset: kDataLoss for damage, kUnimplemented for what is newer or was never defined, kInvalidArgument
// for a file of another type than `wanted` (with a hint what to do with it).
absl::StatusOr<MipHeader> ParseMipHeader(std::span<const std::byte> bytes, MipFileType wanted);

// data_offset is ignored: what is written is the layout's own. A .mip has no width.
void AppendMipHeader(const MipHeader& header, std::string& out);

// The two hashes of the format: the first bytes of an MD5, as a little-endian number.
uint64_t MipFunctionSignature(absl::string_view function_name);
// The text that was hashed is the name of the link unit: of a module, "libfoo.so" or "Shop.dll".
uint32_t MipModuleHash(absl::string_view link_unit_name);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_MIP_MIP_LAYOUT_H_
