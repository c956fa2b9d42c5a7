#include "formats/elf/eh_frame.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/elf/dwarf_cursor.h"

namespace clrsampler {
namespace {

constexpr uint8_t kTableEncoding = PointerEncoding::kDataRelative | PointerEncoding::kSigned4;

}  // namespace

absl::StatusOr<FrameDescription> ParseFrameDescription(const ElfImage& image, VirtualAddress at) {
  return FrameDescriptions(image).At(at);
}

absl::StatusOr<FrameDescription> FrameDescriptions::At(VirtualAddress at) {
  if (!section_ || at < section_->address || at.value - section_->address.value >= section_->bytes.size()) {
    section_ = SegmentWithFrames(image_, at);
    common_.reset();
  }
  const std::optional<FrameEntry> entry =
      section_ ? ReadFrameEntry(*section_, at.value - section_->address.value) : std::nullopt;
  if (!entry || entry->is_common) return absl::DataLossError(absl::StrCat("no FDE at 0x", absl::Hex(at.value)));
  if (!common_ || common_at_ != entry->common_at) {
    common_at_ = entry->common_at;
    common_ = ReadCommonEntry(*section_, common_at_);
  }
  if (!common_) return absl::DataLossError(absl::StrCat("unreadable CIE of the FDE at 0x", absl::Hex(at.value)));
  const std::optional<FrameDescription> description = ReadFrameDescription(*entry, *common_);
  if (!description) return absl::DataLossError(absl::StrCat("damaged FDE at 0x", absl::Hex(at.value)));
  return *description;
}

absl::StatusOr<EhFrameTable> EhFrameTable::Parse(const ElfImage& image) {
  if (!image.eh_frame_header()) return absl::NotFoundError("no .eh_frame_hdr");
  const VirtualAddress header = *image.eh_frame_header();
  const auto bytes = image.BytesFrom(header);
  if (!bytes) return absl::DataLossError(".eh_frame_hdr lies outside the file");
  DwarfCursor cursor(*bytes, header);
  const uint8_t version = cursor.Take<uint8_t>();
  const uint8_t frame_encoding = cursor.Take<uint8_t>();
  const uint8_t count_encoding = cursor.Take<uint8_t>();
  const uint8_t table_encoding = cursor.Take<uint8_t>();
  if (!cursor.ok()) return absl::DataLossError("truncated .eh_frame_hdr");
  if (version != 1) return absl::UnimplementedError(absl::StrCat(".eh_frame_hdr version ", version));
  if (count_encoding == PointerEncoding::kOmitted || table_encoding == PointerEncoding::kOmitted)
    return absl::NotFoundError("no table in .eh_frame_hdr");
  if (table_encoding != kTableEncoding) {
    return absl::UnimplementedError(absl::StrCat(".eh_frame_hdr table encoding 0x", absl::Hex(table_encoding)));
  }
  if (frame_encoding != PointerEncoding::kOmitted) cursor.TakeForm(frame_encoding);
  const uint64_t count = cursor.TakeForm(count_encoding);
  const std::span<const std::byte> room = cursor.rest();
  if (!cursor.ok() || count > room.size() / kRowBytes)
    return absl::DataLossError(".eh_frame_hdr table outside the file");
  if (count > kMaxRows) return absl::ResourceExhaustedError(absl::StrCat(".eh_frame_hdr has ", count, " functions"));
  return EhFrameTable(image, header, room.first(count * kRowBytes));
}

VirtualAddress EhFrameTable::FunctionStart(size_t index) const {
  const int64_t relative = *LoadAt<int32_t>(rows_, index * kRowBytes);
  return {header_.value + static_cast<uint64_t>(relative)};
}

VirtualAddress EhFrameTable::DescriptionAddress(size_t index) const {
  const int64_t relative = *LoadAt<int32_t>(rows_, index * kRowBytes + 4);
  return {header_.value + static_cast<uint64_t>(relative)};
}

absl::StatusOr<FrameDescription> EhFrameTable::Description(size_t index) const {
  return ParseFrameDescription(image_, DescriptionAddress(index));
}

std::optional<size_t> EhFrameTable::IndexBelow(VirtualAddress address) const {
  size_t low = 0, high = count_;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (FunctionStart(middle) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return std::nullopt;
  return low - 1;
}

std::optional<VirtualAddress> EhFrameTable::NextStart(VirtualAddress address) const {
  const std::optional<size_t> below = IndexBelow(address);
  const size_t next = below ? *below + 1 : 0;
  if (next >= count_) return std::nullopt;
  return FunctionStart(next);
}

std::optional<FunctionBounds> EhFrameTable::Find(VirtualAddress address) const {
  const std::optional<size_t> index = IndexBelow(address);
  if (!index || !image_.IsExecutable(address)) return std::nullopt;
  const VirtualAddress start = FunctionStart(*index);
  if (start > address) return std::nullopt;  // the table is not sorted
  const absl::StatusOr<FrameDescription> description = Description(*index);
  if (description.ok() && description->start == start) {
    if (address >= description->end) return std::nullopt;
    return FunctionBounds{start, description->end, true};
  }
  VirtualAddress end{UINT64_MAX};
  for (const LoadSegment& segment : image_.segments()) {
    if (start < segment.address || start.value - segment.address.value >= segment.memory_bytes) continue;
    end = {segment.address.value + segment.memory_bytes};
  }
  if (*index + 1 < count_) end = std::min(end, FunctionStart(*index + 1));
  if (end <= address) return std::nullopt;
  return FunctionBounds{start, end, false};
}

}  // namespace clrsampler
