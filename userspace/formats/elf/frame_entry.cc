#include "formats/elf/frame_entry.h"

#include <algorithm>

#include "formats/byte_reader.h"
#include "formats/elf/dwarf_cursor.h"

namespace clrsampler {
namespace {

constexpr uint32_t kLongLength = 0xffffffff;
constexpr size_t kMaxAugmentation = 16;

// Unknown letters after 'z' are skipped by the length of the augmentation data. The data behind an unknown letter can't
// be found any more, so the pointer encoding must come before it.
void ReadAugmentation(absl::string_view letters, DwarfCursor& cursor, CommonEntry& common) {
  if (letters.empty()) return;
  if (letters.front() != 'z') return cursor.Fail();
  common.has_augmentation_data = true;
  const uint64_t bytes = cursor.TakeUleb();
  DwarfCursor data = cursor;
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

}  // namespace

std::optional<FrameEntry> ReadFrameEntry(const FrameSection& section, uint64_t offset) {
  if (offset > section.bytes.size()) return std::nullopt;
  DwarfCursor cursor(section.bytes.subspan(offset), {section.address.value + offset});
  uint64_t length = cursor.Take<uint32_t>();
  const bool is_long = length == kLongLength;
  if (is_long) length = cursor.Take<uint64_t>();
  const bool long_id = is_long && section.debug_frame;
  const size_t id_bytes = long_id ? sizeof(uint64_t) : sizeof(uint32_t);
  if (!cursor.ok() || length < id_bytes || length > cursor.rest().size()) return std::nullopt;
  const uint64_t id_at = offset + cursor.at();
  FrameEntry entry;
  entry.end = id_at + length;
  const uint64_t id = long_id ? cursor.Take<uint64_t>() : cursor.Take<uint32_t>();
  entry.body_at = cursor.address();
  entry.body = section.bytes.subspan(id_at + id_bytes, length - id_bytes);
  if (section.debug_frame) {
    entry.is_common = id == (long_id ? ~uint64_t{0} : kLongLength);
    entry.common_at = id;
  } else {
    entry.is_common = id == 0;
    if (id > id_at) return std::nullopt;
    entry.common_at = id_at - id;
  }
  return entry;
}

std::optional<CommonEntry> ReadCommonEntry(const FrameSection& section, uint64_t offset) {
  const std::optional<FrameEntry> entry = ReadFrameEntry(section, offset);
  if (!entry || !entry->is_common) return std::nullopt;
  DwarfCursor cursor(entry->body, entry->body_at);
  const uint8_t version = cursor.Take<uint8_t>();
  if (version != 1 && version != 3 && !(version == 4 && section.debug_frame)) return std::nullopt;
  const auto letters = TextAt(entry->body, cursor.at(), kMaxAugmentation);
  if (!letters) return std::nullopt;
  cursor.Skip(letters->size() + 1);
  if (version == 4) {
    const uint8_t address_bytes = cursor.Take<uint8_t>();
    const uint8_t segment_bytes = cursor.Take<uint8_t>();
    if (address_bytes != sizeof(uint64_t) || segment_bytes != 0) return std::nullopt;
  }
  const bool old_gcc = *letters == "eh";  // GCC 2: a pointer that means nothing to us
  if (old_gcc) cursor.Skip(sizeof(uint64_t));
  CommonEntry common;
  common.code_alignment = cursor.TakeUleb();
  common.data_alignment = cursor.TakeSleb();
  common.return_register = version == 1 ? cursor.Take<uint8_t>() : cursor.TakeUleb();
  if (!old_gcc) ReadAugmentation(*letters, cursor, common);
  if (!cursor.ok()) return std::nullopt;
  common.instructions_at = cursor.address();
  common.instructions = cursor.rest();
  return common;
}

std::optional<FrameDescription> ReadFrameDescription(const FrameEntry& entry, const CommonEntry& common) {
  DwarfCursor cursor(entry.body, entry.body_at);
  FrameDescription description;
  description.start = cursor.TakePointer(common.pointer_encoding);
  const uint64_t length = cursor.TakeForm(common.pointer_encoding);
  if (common.has_augmentation_data) cursor.Skip(cursor.TakeUleb());
  description.end = {description.start.value + length};
  if (!cursor.ok() || description.end <= description.start) return std::nullopt;
  description.common = common;
  description.instructions_at = cursor.address();
  description.instructions = cursor.rest();
  return description;
}

std::optional<FrameSection> SegmentWithFrames(const ElfImage& image, VirtualAddress address) {
  for (const LoadSegment& segment : image.segments()) {
    if (address < segment.address || address.value - segment.address.value >= segment.file_bytes) continue;
    const auto bytes = image.BytesFrom(segment.address);
    if (bytes) return FrameSection{*bytes, segment.address};
  }
  return std::nullopt;
}

}  // namespace clrsampler
