#include "formats/pe/pe_image.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint16_t kDosMagic = 0x5A4D;          // "MZ"
constexpr uint32_t kPeMagic = 0x00004550;       // "PE\0\0"
constexpr uint32_t kR2rMagic = 0x00525452;      // "RTR\0"
constexpr uint32_t kPerfMapMagic = 0x4D523252;  // "R2RM"
constexpr uint32_t kSectionExecute = 0x20000000;
constexpr uint16_t kPe32Plus = 0x20B;

// The loader of Windows takes 96 sections.
constexpr uint32_t kMaxSections = 96;
// Types 100 to 123 occur in R2R 9.1 to 16.0, each at most once.
constexpr uint32_t kMaxR2rSections = 256;
constexpr uint32_t kDebugEntryBytes = 28;
constexpr uint32_t kMaxDebugEntries = 64;
constexpr size_t kMaxPerfMapName = 260;  // the entry's name field has this size

struct MachineName {
  PeMachine machine;
  PeOs os;
};

MachineName DecodeMachine(uint16_t field) {
  struct OsMask {
    PeOs os;
    uint16_t mask;
  };
  // IMAGE_FILE_MACHINE_OS_OVERRIDE values of src/coreclr/inc/pedecoder.h (8.0 to 10.0).
  constexpr OsMask kMasks[] = {{PeOs::kWindowsOrAny, 0}, {PeOs::kLinux, 0x7B79}, {PeOs::kApple, 0x4644},
                               {PeOs::kFreeBsd, 0xADC4}, {PeOs::kOther, 0x1993}, {PeOs::kOther, 0x1992}};
  for (const OsMask& row : kMasks) {
    const uint16_t machine = field ^ row.mask;
    if (machine == 0x8664) return {PeMachine::kX64, row.os};
    if (machine == 0xAA64) return {PeMachine::kArm64, row.os};
  }
  return {PeMachine::kOther, PeOs::kOther};
}

}  // namespace

const R2rSection* R2rCoreHeader::Find(R2rSectionType type) const {
  for (const R2rSection& section : sections) {
    if (section.type == static_cast<uint32_t>(type)) return &section;
  }
  return nullptr;
}

bool LooksLikePe(std::span<const std::byte> file) {
  if (LoadAt<uint16_t>(file, 0) != kDosMagic) return false;
  const std::optional<uint32_t> header = LoadAt<uint32_t>(file, 0x3C);
  return header && LoadAt<uint32_t>(file, *header) == kPeMagic;
}

absl::StatusOr<PeImage> PeImage::Parse(std::span<const std::byte> file, PeLayout layout) {
  if (!LooksLikePe(file)) return absl::DataLossError("not a PE file");
  const uint64_t header = LoadAt<uint32_t>(file, 0x3C).value_or(0);
  const std::optional<uint16_t> machine = LoadAt<uint16_t>(file, header + 4);
  const std::optional<uint16_t> section_count = LoadAt<uint16_t>(file, header + 6);
  const std::optional<uint16_t> optional_bytes = LoadAt<uint16_t>(file, header + 20);
  const uint64_t optional = header + 24;
  const std::optional<uint16_t> magic = LoadAt<uint16_t>(file, optional);
  if (!machine || !section_count || !optional_bytes || !magic) return absl::DataLossError("the PE header is cut off");

  PeImage image;
  image.file_ = file;
  image.layout_ = layout;
  const MachineName decoded = DecodeMachine(*machine);
  image.machine_ = decoded.machine;
  image.os_ = decoded.os;
  RETURN_IF_ERROR(image.ParseSections(optional + *optional_bytes, *section_count));

  const uint64_t directories = optional + (*magic == kPe32Plus ? 112 : 96);
  const uint32_t directory_count = LoadAt<uint32_t>(file, directories - 4).value_or(0);
  auto directory = [&](uint32_t index) {
    if (index >= directory_count || directories + 8 * index + 8 > optional + *optional_bytes) return RvaRange{};
    return RvaRange{LoadAt<uint32_t>(file, directories + 8 * index).value_or(0),
                    LoadAt<uint32_t>(file, directories + 8 * index + 4).value_or(0)};
  };
  image.debug_ = directory(6);
  image.cli_ = directory(14);
  RETURN_IF_ERROR(image.ParseCliHeader());
  return image;
}

absl::Status PeImage::ParseSections(uint64_t offset, uint32_t count) {
  if (count > kMaxSections) return absl::DataLossError(absl::StrCat("PE file with ", count, " sections"));
  sections_.reserve(count);
  for (uint32_t i = 0; i < count; ++i, offset += 40) {
    const std::optional<std::span<const std::byte>> row = SliceAt(file_, offset, 40);
    if (!row) return absl::DataLossError("the section table is cut off");
    PeSection section;
    section.virtual_bytes = *LoadAt<uint32_t>(*row, 8);
    section.rva = *LoadAt<uint32_t>(*row, 12);
    section.file_bytes = *LoadAt<uint32_t>(*row, 16);
    section.file_offset = *LoadAt<uint32_t>(*row, 20);
    section.executable = (*LoadAt<uint32_t>(*row, 36) & kSectionExecute) != 0;
    sections_.push_back(section);
  }
  return absl::OkStatus();
}

absl::Status PeImage::ParseCliHeader() {
  if (cli_.bytes < 72) return absl::OkStatus();
  const std::optional<std::span<const std::byte>> header = Bytes({cli_.rva, 72});
  if (!header) return absl::DataLossError("the CLI header lies outside the file");
  metadata_ = RvaRange{*LoadAt<uint32_t>(*header, 8), *LoadAt<uint32_t>(*header, 12)};
  if (metadata_->bytes == 0) metadata_.reset();
  const RvaRange native{*LoadAt<uint32_t>(*header, 64), *LoadAt<uint32_t>(*header, 68)};
  if (native.bytes == 0) return absl::OkStatus();
  const std::optional<std::span<const std::byte>> r2r = Bytes({native.rva, 8});
  // The field also holds the header of NGen images of .NET Framework, which are not ours.
  if (!r2r || LoadAt<uint32_t>(*r2r, 0) != kR2rMagic) return absl::OkStatus();
  ASSIGN_OR_RETURN(R2rCoreHeader core, CoreHeaderAt(native.rva + 8));
  r2r_ = R2rHeader{*LoadAt<uint16_t>(*r2r, 4), *LoadAt<uint16_t>(*r2r, 6), std::move(core)};
  return absl::OkStatus();
}

absl::StatusOr<R2rCoreHeader> PeImage::CoreHeaderAt(uint32_t rva) const {
  const std::optional<std::span<const std::byte>> header = Bytes({rva, 8});
  if (!header) return absl::DataLossError("an R2R header lies outside the file");
  const uint32_t count = *LoadAt<uint32_t>(*header, 4);
  if (count > kMaxR2rSections) return absl::DataLossError(absl::StrCat("R2R header with ", count, " sections"));
  const std::optional<std::span<const std::byte>> rows = Bytes({rva + 8, 12 * count});
  if (!rows) return absl::DataLossError("the table of R2R sections is cut off");
  R2rCoreHeader core;
  core.flags = *LoadAt<uint32_t>(*header, 0);
  core.sections.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    core.sections.push_back({*LoadAt<uint32_t>(*rows, 12 * i),
                             {*LoadAt<uint32_t>(*rows, 12 * i + 4), *LoadAt<uint32_t>(*rows, 12 * i + 8)}});
  }
  return core;
}

const PeSection* PeImage::SectionOfRva(uint32_t rva) const {
  for (const PeSection& section : sections_) {
    if (rva >= section.rva && rva - section.rva < std::max(section.virtual_bytes, section.file_bytes)) return &section;
  }
  return nullptr;
}

uint64_t PeImage::OffsetOf(const PeSection& section) const {
  return layout_ == PeLayout::kFile ? section.file_offset : section.rva;
}

uint32_t PeImage::BytesIn(const PeSection& section) const {
  return layout_ == PeLayout::kFile ? section.file_bytes : std::max(section.virtual_bytes, section.file_bytes);
}

std::optional<uint64_t> PeImage::OffsetOfRva(uint32_t rva) const {
  const PeSection* section = SectionOfRva(rva);
  if (section == nullptr || rva - section->rva >= BytesIn(*section)) return std::nullopt;
  return OffsetOf(*section) + (rva - section->rva);
}

std::optional<uint32_t> PeImage::RvaOfOffset(uint64_t offset) const {
  for (const PeSection& section : sections_) {
    const uint64_t start = OffsetOf(section);
    if (offset < start || offset - start >= BytesIn(section)) continue;
    const uint64_t rva = section.rva + (offset - start);
    if (rva > UINT32_MAX) return std::nullopt;
    return static_cast<uint32_t>(rva);
  }
  return std::nullopt;
}

std::optional<std::span<const std::byte>> PeImage::Bytes(RvaRange range) const {
  const PeSection* section = SectionOfRva(range.rva);
  if (section == nullptr) return std::nullopt;
  const uint32_t inside = range.rva - section->rva;
  if (inside > BytesIn(*section) || BytesIn(*section) - inside < range.bytes) return std::nullopt;
  return SliceAt(file_, OffsetOf(*section) + inside, range.bytes);
}

std::span<const std::byte> PeImage::BytesFrom(uint32_t rva, size_t most) const {
  const std::optional<uint64_t> offset = OffsetOfRva(rva);
  if (!offset || *offset >= file_.size()) return {};
  return file_.subspan(*offset, std::min<uint64_t>(most, file_.size() - *offset));
}

std::vector<PeDebugEntry> PeImage::DebugEntries() const {
  std::vector<PeDebugEntry> entries;
  const uint32_t count = std::min(debug_.bytes / kDebugEntryBytes, kMaxDebugEntries);
  const std::optional<std::span<const std::byte>> rows = Bytes({debug_.rva, kDebugEntryBytes * count});
  if (!rows) return entries;
  for (uint32_t i = 0; i < count; ++i) {
    const std::span<const std::byte> row = rows->subspan(size_t{i} * kDebugEntryBytes, kDebugEntryBytes);
    PeDebugEntry entry;
    entry.stamp = *LoadAt<uint32_t>(row, 4);
    entry.minor = *LoadAt<uint16_t>(row, 10);
    entry.type = *LoadAt<uint32_t>(row, 12);
    // An entry has both: its RVA and its place in the file. Nothing is at 0 in either layout.
    const uint32_t offset = *LoadAt<uint32_t>(row, layout_ == PeLayout::kFile ? 24 : 20);
    if (offset != 0) entry.data = SliceAt(file_, offset, *LoadAt<uint32_t>(row, 16)).value_or(entry.data);
    entries.push_back(entry);
  }
  return entries;
}

std::vector<PerfMapDebugEntry> PeImage::PerfMapEntries() const {
  std::vector<PerfMapDebugEntry> entries;
  for (const PeDebugEntry& row : DebugEntries()) {
    if (row.type != kPerfMapDebugEntryType) continue;
    if (row.data.size() < 24 || LoadAt<uint32_t>(row.data, 0) != kPerfMapMagic) continue;
    PerfMapDebugEntry entry;
    std::memcpy(entry.signature.data(), row.data.data() + 4, entry.signature.size());
    entry.version = *LoadAt<uint32_t>(row.data, 20);
    const std::optional<absl::string_view> name = TextAt(row.data, 24, kMaxPerfMapName);
    if (!name) continue;
    entry.file_name = std::string(*name);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace clrsampler
