#include "formats/elf/eh_frame.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

// DW_EH_PE_*: the low four bits are the form, the next three what it is relative to, the highest means "stored there".
constexpr uint8_t kFormMask = 0x0f, kRelationMask = 0x70;
constexpr uint8_t kAbsolute = 0x00, kUnsigned2 = 0x02, kUnsigned4 = 0x03, kUnsigned8 = 0x04;
constexpr uint8_t kSigned2 = 0x0a, kSigned4 = 0x0b, kSigned8 = 0x0c;
constexpr uint8_t kPcRelative = 0x10, kDataRelative = 0x30, kIndirect = 0x80, kOmitted = 0xff;
constexpr uint8_t kTableEncoding = kDataRelative | kSigned4;

// Reads forward and remembers failure instead of stopping: the result counts only when `ok` at the end.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, VirtualAddress base) : bytes_(bytes), base_(base) {}

  bool ok() const { return ok_; }
  void Fail() { ok_ = false; }
  size_t at() const { return at_; }
  VirtualAddress address() const { return {base_.value + at_}; }
  std::span<const std::byte> rest() const { return ok_ ? bytes_.subspan(at_) : std::span<const std::byte>(); }

  template <typename T>
  T Take() {
    const std::optional<T> value = LoadAt<T>(bytes_, at_);
    if (!value) ok_ = false;
    if (!ok_) return 0;
    at_ += sizeof(T);
    return *value;
  }

  void Skip(uint64_t count) {
    if (count > bytes_.size() - at_) ok_ = false;
    if (ok_) at_ += count;
  }

  uint64_t TakeUleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; ok_ && shift < 64; shift += 7) {
      const uint8_t byte = Take<uint8_t>();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    ok_ = false;
    return 0;
  }

  int64_t TakeSleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; ok_ && shift < 64;) {
      const uint8_t byte = Take<uint8_t>();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift < 64) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
    ok_ = false;
    return 0;
  }

  // The bare number of a form, without what it is relative to.
  uint64_t TakeForm(uint8_t encoding) {
    switch (encoding & kFormMask) {
      case kAbsolute:
      case kUnsigned8:
      case kSigned8:
        return Take<uint64_t>();
      case kUnsigned2:
        return Take<uint16_t>();
      case kUnsigned4:
        return Take<uint32_t>();
      case kSigned2:
        return static_cast<uint64_t>(int64_t{Take<int16_t>()});
      case kSigned4:
        return static_cast<uint64_t>(int64_t{Take<int32_t>()});
      default:
        ok_ = false;
        return 0;
    }
  }

  // An address in an encoding that needs nothing but its own place to be read.
  VirtualAddress TakePointer(uint8_t encoding) {
    const VirtualAddress place = address();
    const uint64_t value = TakeForm(encoding);
    if ((encoding & kIndirect) != 0) ok_ = false;
    switch (encoding & kRelationMask) {
      case 0:
        return {value};
      case kPcRelative:
        return {place.value + value};
      default:
        ok_ = false;
        return {};
    }
  }

 private:
  std::span<const std::byte> bytes_;
  VirtualAddress base_;
  size_t at_ = 0;
  bool ok_ = true;
};

// A CIE or FDE without its length field; `id_at` is where the CIE pointer stands, from which it counts back.
struct Entry {
  std::span<const std::byte> body;  // behind the CIE pointer
  VirtualAddress body_at;
  VirtualAddress id_at;
  uint32_t id = 0;
};

std::optional<Entry> ReadEntry(const ElfImage& image, VirtualAddress at) {
  const auto bytes = image.BytesFrom(at);
  if (!bytes) return std::nullopt;
  Cursor cursor(*bytes, at);
  uint64_t length = cursor.Take<uint32_t>();
  if (length == 0xffffffff) length = cursor.Take<uint64_t>();
  if (!cursor.ok() || length < sizeof(uint32_t) || length > bytes->size() - cursor.at()) return std::nullopt;
  const size_t end = cursor.at() + length;
  Entry entry;
  entry.id_at = cursor.address();
  entry.id = cursor.Take<uint32_t>();
  entry.body_at = cursor.address();
  entry.body = bytes->subspan(cursor.at(), end - cursor.at());
  return entry;
}

// Letters after 'z' that we do not know are skipped by the length of the augmentation data; what follows an unknown
// letter in the data can't be found any more, so the pointer encoding must come before it.
void ReadAugmentation(absl::string_view letters, Cursor& cursor, CommonEntry& common) {
  if (letters.empty()) return;
  if (letters.front() != 'z') return cursor.Fail();
  common.has_augmentation_data = true;
  const uint64_t bytes = cursor.TakeUleb();
  Cursor data = cursor;
  cursor.Skip(bytes);
  for (const char letter : letters.substr(1)) {
    switch (letter) {
      case 'R':
        common.pointer_encoding = data.Take<uint8_t>();
        break;
      case 'L':
        data.Take<uint8_t>();
        break;
      case 'P':
        data.TakeForm(data.Take<uint8_t>());
        break;
      case 'S':
        common.signal_frame = true;
        break;
      case 'B':  // arm64: return addresses are signed with key B
      case 'G':  // arm64: memory tagging
        break;
      default:
        return;
    }
  }
  if (!data.ok()) cursor.Fail();
}

std::optional<CommonEntry> ReadCommon(const ElfImage& image, VirtualAddress at) {
  const std::optional<Entry> entry = ReadEntry(image, at);
  if (!entry || entry->id != 0) return std::nullopt;
  Cursor cursor(entry->body, entry->body_at);
  const uint8_t version = cursor.Take<uint8_t>();
  if (version != 1 && version != 3) return std::nullopt;
  const auto letters = TextAt(entry->body, cursor.at(), 16);
  if (!letters) return std::nullopt;
  cursor.Skip(letters->size() + 1);
  CommonEntry common;
  common.code_alignment = cursor.TakeUleb();
  common.data_alignment = cursor.TakeSleb();
  common.return_register = version == 1 ? cursor.Take<uint8_t>() : cursor.TakeUleb();
  ReadAugmentation(*letters, cursor, common);
  if (!cursor.ok()) return std::nullopt;
  common.instructions = cursor.rest();
  return common;
}

}  // namespace

absl::StatusOr<FrameDescription> ParseFrameDescription(const ElfImage& image, VirtualAddress at) {
  const std::optional<Entry> entry = ReadEntry(image, at);
  if (!entry || entry->id == 0) return absl::DataLossError(absl::StrCat("no FDE at 0x", absl::Hex(at.value)));
  const std::optional<CommonEntry> common = ReadCommon(image, {entry->id_at.value - entry->id});
  if (!common) return absl::DataLossError(absl::StrCat("unreadable CIE of the FDE at 0x", absl::Hex(at.value)));
  Cursor cursor(entry->body, entry->body_at);
  FrameDescription description;
  description.common = *common;
  description.start = cursor.TakePointer(common->pointer_encoding);
  const uint64_t length = cursor.TakeForm(common->pointer_encoding);
  if (common->has_augmentation_data) cursor.Skip(cursor.TakeUleb());
  description.end = {description.start.value + length};
  if (!cursor.ok() || description.end <= description.start) {
    return absl::DataLossError(absl::StrCat("damaged FDE at 0x", absl::Hex(at.value)));
  }
  description.instructions = cursor.rest();
  return description;
}

absl::StatusOr<EhFrameTable> EhFrameTable::Parse(const ElfImage& image) {
  if (!image.eh_frame_header()) return absl::NotFoundError("no .eh_frame_hdr");
  const VirtualAddress header = *image.eh_frame_header();
  const auto bytes = image.BytesFrom(header);
  if (!bytes) return absl::DataLossError(".eh_frame_hdr lies outside the file");
  Cursor cursor(*bytes, header);
  const uint8_t version = cursor.Take<uint8_t>();
  const uint8_t frame_encoding = cursor.Take<uint8_t>();
  const uint8_t count_encoding = cursor.Take<uint8_t>();
  const uint8_t table_encoding = cursor.Take<uint8_t>();
  if (!cursor.ok()) return absl::DataLossError("truncated .eh_frame_hdr");
  if (version != 1) return absl::UnimplementedError(absl::StrCat(".eh_frame_hdr version ", version));
  if (count_encoding == kOmitted || table_encoding == kOmitted) return absl::NotFoundError("no table in .eh_frame_hdr");
  if (table_encoding != kTableEncoding) {
    return absl::UnimplementedError(absl::StrCat(".eh_frame_hdr table encoding 0x", absl::Hex(table_encoding)));
  }
  if (frame_encoding != kOmitted) cursor.TakeForm(frame_encoding);
  const uint64_t count = cursor.TakeForm(count_encoding);
  const std::span<const std::byte> room = cursor.rest();
  if (!cursor.ok() || count > room.size() / kRowBytes)
    return absl::DataLossError(".eh_frame_hdr table outside the file");
  return EhFrameTable(image, header, room.first(count * kRowBytes));
}

VirtualAddress EhFrameTable::FunctionStart(size_t index) const {
  const int64_t relative = *LoadAt<int32_t>(rows_, index * kRowBytes);
  return {header_.value + static_cast<uint64_t>(relative)};
}

absl::StatusOr<FrameDescription> EhFrameTable::Description(size_t index) const {
  const int64_t relative = *LoadAt<int32_t>(rows_, index * kRowBytes + 4);
  return ParseFrameDescription(image_, {header_.value + static_cast<uint64_t>(relative)});
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
