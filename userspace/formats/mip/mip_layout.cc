#include "formats/mip/mip_layout.h"

#include <md5.h>

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "formats/byte_reader.h"
#include "formats/mip/little_endian.h"
#include "status/status.h"

namespace clrsampler {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr unsigned char kMagic[] = {0xFB, 'M', 'I', 'P'};

// FileType of the layouts with 32 bytes of header: one of the first four, and at most one width.
constexpr uint16_t kRawBit = 0x1, kReturnBit = 0x2, kMapBit = 0x4, kProfileBit = 0x8;
constexpr uint16_t k64Bit = 0x10, k32Bit = 0x20;

constexpr MipLayoutTraits kTraits[] = {
    {"documented", 32, false, false, 52},
    {"llvm", 32, true, true, 60},
    {"old", 24, false, true, 52},
};

absl::string_view TypeName(MipFileType type) {
  switch (type) {
    case MipFileType::kRaw:
      return ".mipraw";
    case MipFileType::kMap:
      return ".mipmap";
    case MipFileType::kProfile:
      return ".mip";
  }
  return "";
}

absl::string_view TypeHint(MipFileType type) {
  switch (type) {
    case MipFileType::kRaw:
      return "counters of a run go into a profile: clrsampler mip merge -p X.mip RAW.mipraw";
    case MipFileType::kMap:
      return "a map makes an empty profile: clrsampler mip create -p X.mip MAP.mipmap";
    case MipFileType::kProfile:
      return "a profile is what clrsampler mip show, order, covered, info and to-yaml read, with -p";
  }
  return "";
}

absl::Status Damaged(uint64_t offset, absl::string_view what) {
  return WithHint(absl::DataLossError(absl::StrCat("the header is damaged at byte ", offset, ": ", what)), kMipCutHint);
}

absl::StatusOr<MipFileType> TypeOf(uint16_t file_type, bool old) {
  const uint16_t type = old ? file_type : file_type & 0xF;
  if (old && type >= 1 && type <= 3) return static_cast<MipFileType>(type - 1);
  if (!old && (file_type & ~0x3F) == 0 && (file_type & 0x30) != 0x30) {
    if (type == kRawBit) return MipFileType::kRaw;
    if (type == kMapBit) return MipFileType::kMap;
    if (type == kProfileBit) return MipFileType::kProfile;
    if (type == kReturnBit) {
      return absl::UnimplementedError("a file of return addresses (.mipret), whose records were never defined");
    }
  }
  return Damaged(6, absl::StrFormat("FileType %#x is none", file_type));
}

std::array<uint8_t, MD5_DIGEST_LENGTH> Md5(absl::string_view text) {
  MD5_CTX context;
  MD5Init(&context);
  MD5Update(&context, reinterpret_cast<const uint8_t*>(text.data()), text.size());
  std::array<uint8_t, MD5_DIGEST_LENGTH> digest;
  MD5Final(digest.data(), &context);
  return digest;
}

}  // namespace

std::string MipKindsText(uint32_t kinds) {
  std::vector<absl::string_view> words;
  if ((kinds & kMipFunctionCoverage) != 0) words.push_back("Function Coverage");
  if ((kinds & kMipBlockCoverage) != 0) words.push_back("Block Coverage");
  if ((kinds & kMipTimestamp) != 0) words.push_back("Function Timestamp");
  if ((kinds & kMipCallCount) != 0) words.push_back("Function Call Count");
  return absl::StrJoin(words, ", ");
}

absl::Status CheckMipKinds(uint32_t kinds, absl::string_view where) {
  if ((kinds & kMipReturnAddress) != 0) {
    return absl::UnimplementedError("return addresses were instrumented, whose records were never defined");
  }
  if ((kinds & ~kMipKnownKinds) != 0) {
    return absl::DataLossError(absl::StrFormat("%s %#x is none", std::string(where), kinds));
  }
  if (((kinds & kMipFunctionCoverage) != 0) == ((kinds & kMipCounts) != 0)) {
    return absl::DataLossError(
        absl::StrFormat("%s %#x has neither coverage nor counts of functions, or both", std::string(where), kinds));
  }
  return absl::OkStatus();
}

const MipLayoutTraits& TraitsOf(MipLayout layout) { return kTraits[static_cast<size_t>(layout)]; }

bool HasMipMagic(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof kMagic && std::memcmp(bytes.data(), kMagic, sizeof kMagic) == 0;
}

absl::StatusOr<MipHeader> ParseMipHeader(std::span<const std::byte> bytes, MipFileType wanted) {
  if (!HasMipMagic(bytes)) {
    return WithHint(
        absl::DataLossError("not a MIP file: it does not begin with the bytes FB 4D 49 50"),
        "a program that is instrumented for Machine IR Profiles writes .mipraw files, and has the map in its "
        "section __llvm_mipmap");
  }
  const std::optional<uint16_t> version = LoadAt<uint16_t>(bytes, 4), file_type = LoadAt<uint16_t>(bytes, 6);
  const std::optional<uint32_t> kinds = LoadAt<uint32_t>(bytes, 8), hash = LoadAt<uint32_t>(bytes, 12);
  const std::optional<uint32_t> at_20 = LoadAt<uint32_t>(bytes, 20);
  if (!at_20) return Damaged(bytes.size(), "the file ends inside it");
  if (*version > kMipVersion) {
    return WithHint(absl::UnimplementedError(absl::StrCat("a MIP file of version ", *version)),
                    absl::StrCat("versions up to ", kMipVersion, " are known"));
  }
  // Two bytes tell the layouts apart. Neither can be the other's. The upper half of the raw section's offset lies at
  // 20. Only maps have it, and their FileType is no number of the old layout.
  const bool old = *file_type >= 1 && *file_type <= 3 && *at_20 == TraitsOf(MipLayout::kOld).header_bytes;
  ASSIGN_OR_RETURN(const MipFileType type, TypeOf(*file_type, old));
  if (type != wanted) {
    return WithHint(absl::InvalidArgumentError(
                        absl::StrCat("it is a ", TypeName(type), " file, not a ", TypeName(wanted), " file")),
                    TypeHint(type));
  }
  RETURN_IF_ERROR(WithHint(CheckMipKinds(*kinds, "the header is damaged at byte 8: ProfileType"), kMipCutHint));
  MipHeader header{.version = *version, .type = type, .kinds = *kinds, .module_hash = *hash};
  if (old) {
    header.layout = MipLayout::kOld;
    header.is_32_bit = true;  // its PC offsets are that wide on every machine
    header.data_offset = *at_20;
    return header;
  }
  header.is_32_bit = (*file_type & k32Bit) != 0;
  const std::optional<uint32_t> data_offset = LoadAt<uint32_t>(bytes, 28);
  if (!data_offset) return Damaged(bytes.size(), "the file ends inside it");
  header.raw_section_offset = header.is_32_bit ? *LoadAt<int32_t>(bytes, 16) : *LoadAt<int64_t>(bytes, 16);
  if (*data_offset < TraitsOf(MipLayout::kDocumented).header_bytes || *data_offset > bytes.size()) {
    return Damaged(28,
                   absl::StrFormat("OffsetToData %#x lies outside the file of %d bytes", *data_offset, bytes.size()));
  }
  header.data_offset = *data_offset;
  return header;
}

void AppendMipHeader(const MipHeader& header, std::string& out) {
  const bool old = header.layout == MipLayout::kOld;
  uint16_t file_type = 0;
  if (old) {
    file_type = static_cast<uint16_t>(static_cast<int>(header.type) + 1);
  } else if (header.type == MipFileType::kProfile) {
    file_type = kProfileBit;
  } else {
    file_type = (header.type == MipFileType::kRaw ? kRawBit : kMapBit) | (header.is_32_bit ? k32Bit : k64Bit);
  }
  out.append(reinterpret_cast<const char*>(kMagic), sizeof kMagic);
  AppendLittle<uint16_t>(out, header.version);
  AppendLittle<uint16_t>(out, file_type);
  AppendLittle<uint32_t>(out, header.kinds);
  AppendLittle<uint32_t>(out, header.module_hash);
  if (!old) {
    const int64_t offset = header.raw_section_offset;
    AppendLittle<uint64_t>(out, header.is_32_bit ? static_cast<uint32_t>(offset) : static_cast<uint64_t>(offset));
  }
  AppendLittle<uint32_t>(out, 0);
  AppendLittle<uint32_t>(out, TraitsOf(header.layout).header_bytes);
}

uint64_t MipFunctionSignature(absl::string_view function_name) {
  const auto digest = Md5(function_name);
  uint64_t value;
  std::memcpy(&value, digest.data(), sizeof value);
  return value;
}

uint32_t MipModuleHash(absl::string_view link_unit_name) {
  return static_cast<uint32_t>(MipFunctionSignature(link_unit_name));
}

}  // namespace clrsampler
