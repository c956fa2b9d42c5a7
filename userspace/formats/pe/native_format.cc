#include "formats/pe/native_format.h"

#include <algorithm>
#include <bit>

#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint32_t kBlockSize = 16;

// A number of 1, 2 or 4 bytes from a table.
std::optional<uint32_t> LoadSized(std::span<const std::byte> bytes, uint64_t offset, uint32_t width_log2) {
  if (width_log2 == 0) return LoadAt<uint8_t>(bytes, offset);
  if (width_log2 == 1) return LoadAt<uint16_t>(bytes, offset);
  return LoadAt<uint32_t>(bytes, offset);
}

// The element of `index` in the block whose tree starts at `offset`; 0: it has none; nullopt: damaged.
//
// A block is a binary tree over the four low bits of the index, high bit first. A node is a number: bit 0 = there is a
// left child, right behind it; bit 1 = there is a right child, `number >> 2` bytes after its start. With neither bit
// set the node is a leaf for the one index whose low four bits stand in `number >> 2`.
std::optional<uint64_t> FindInBlock(std::span<const std::byte> section, uint64_t offset, uint32_t index) {
  for (uint32_t bit = kBlockSize / 2; bit != 0; bit /= 2) {
    const std::optional<NativeNumber> node = ReadNativeUnsigned(section, offset);
    if (!node) return std::nullopt;
    if ((index & bit) != 0 && (node->value & 2) != 0) {
      offset += node->value >> 2;
    } else if ((index & bit) == 0 && (node->value & 1) != 0) {
      offset = node->next;
    } else if ((node->value & 3) == 0 && node->value >> 2 == (index & (kBlockSize - 1))) {
      return node->next;
    } else {
      return 0;
    }
  }
  return offset;
}

struct ArrayHeader {
  uint32_t length = 0;      // indexes
  uint32_t width_log2 = 0;  // bytes of a slot, which leads to the elements of 16 indexes
  uint64_t slots = 0;       // offset of the first; the others count from it
};

absl::StatusOr<ArrayHeader> ReadArrayHeader(std::span<const std::byte> section) {
  const std::optional<NativeNumber> header = ReadNativeUnsigned(section, 0);
  if (!header || (header->value & 3) == 3) return absl::DataLossError("the header of a native array is damaged");
  const ArrayHeader array = {header->value >> 2, header->value & 3, header->next};
  const uint64_t table_bytes = ((uint64_t{array.length} + kBlockSize - 1) / kBlockSize) << array.width_log2;
  if (table_bytes > section.size() - array.slots)
    return absl::DataLossError("a native array is larger than its section");
  return array;
}

// `index` is below the array's length.
absl::StatusOr<std::optional<uint64_t>> FindElement(std::span<const std::byte> section, const ArrayHeader& array,
                                                    uint32_t index) {
  const uint64_t slot = uint64_t{index / kBlockSize} << array.width_log2;
  const std::optional<uint32_t> block = LoadSized(section, array.slots + slot, array.width_log2);
  const std::optional<uint64_t> element =
      block ? FindInBlock(section, array.slots + *block, index) : std::optional<uint64_t>();
  if (!element) return absl::DataLossError("a native array leads outside its section");
  if (*element == 0) return std::nullopt;
  return element;
}

}  // namespace

std::optional<NativeNumber> ReadNativeUnsigned(std::span<const std::byte> section, uint64_t offset) {
  const std::optional<uint8_t> first = LoadAt<uint8_t>(section, offset);
  if (!first) return std::nullopt;
  // The number of low one bits is the number of bytes that follow; four mean that a whole 32-bit number does.
  const int more = std::countr_one(*first);
  if (more == 0) return NativeNumber{static_cast<uint32_t>(*first) >> 1, offset + 1};
  if (more > 4) return std::nullopt;
  if (more == 4) {
    const std::optional<uint32_t> value = LoadAt<uint32_t>(section, offset + 1);
    if (!value) return std::nullopt;
    return NativeNumber{*value, offset + 5};
  }
  uint32_t value = static_cast<uint32_t>(*first) >> (more + 1);
  for (int i = 1; i <= more; ++i) {
    const std::optional<uint8_t> byte = LoadAt<uint8_t>(section, offset + i);
    if (!byte) return std::nullopt;
    value |= static_cast<uint32_t>(*byte) << (8 * i - more - 1);
  }
  return NativeNumber{value, offset + 1 + more};
}

std::optional<NativeSigned> ReadNativeSigned(std::span<const std::byte> section, uint64_t offset) {
  const std::optional<NativeNumber> number = ReadNativeUnsigned(section, offset);
  if (!number) return std::nullopt;
  const uint64_t bytes = number->next - offset;
  const uint32_t unused = bytes == 5 ? 0 : 32 - 7 * static_cast<uint32_t>(bytes);
  return NativeSigned{static_cast<int32_t>(number->value << unused) >> unused, number->next};
}

std::optional<uint32_t> ReadEntryPoint(std::span<const std::byte> section, uint64_t offset) {
  const std::optional<NativeNumber> id = ReadNativeUnsigned(section, offset);
  if (!id) return std::nullopt;
  return (id->value & 1) != 0 ? id->value >> 2 : id->value >> 1;
}

absl::StatusOr<uint32_t> NativeArrayLength(std::span<const std::byte> section) {
  ASSIGN_OR_RETURN(const ArrayHeader header, ReadArrayHeader(section));
  return header.length;
}

absl::StatusOr<std::optional<uint64_t>> FindInNativeArray(std::span<const std::byte> section, uint32_t index) {
  ASSIGN_OR_RETURN(const ArrayHeader header, ReadArrayHeader(section));
  if (index >= header.length) return std::nullopt;
  return FindElement(section, header, index);
}

absl::Status ForEachInNativeArray(std::span<const std::byte> section, uint32_t indexes,
                                  absl::FunctionRef<absl::Status(uint32_t index, uint64_t offset)> visit) {
  ASSIGN_OR_RETURN(const ArrayHeader header, ReadArrayHeader(section));
  const uint32_t end = std::min(header.length, indexes);
  for (uint32_t index = 0; index < end; ++index) {
    ASSIGN_OR_RETURN(const std::optional<uint64_t> element, FindElement(section, header, index));
    if (element.has_value()) RETURN_IF_ERROR(visit(index, *element));
  }
  return absl::OkStatus();
}

absl::Status ForEachInNativeHashtable(std::span<const std::byte> section,
                                      absl::FunctionRef<absl::Status(uint64_t offset)> visit) {
  const std::optional<uint8_t> header = LoadAt<uint8_t>(section, 0);
  if (!header || (*header & 3) == 3 || *header >> 2 > 31) {
    return absl::DataLossError("the header of a native hash table is damaged");
  }
  const uint32_t width_log2 = *header & 3;
  const uint64_t buckets = uint64_t{1} << (*header >> 2);
  constexpr uint64_t kBase = 1;  // offsets of buckets count from behind the header byte
  if ((buckets + 1) << width_log2 > section.size() - kBase) {
    return absl::DataLossError("a native hash table is larger than its section");
  }
  uint64_t previous_end = 0;
  for (uint64_t bucket = 0; bucket < buckets; ++bucket) {
    const std::optional<uint32_t> first = LoadSized(section, kBase + (bucket << width_log2), width_log2);
    const std::optional<uint32_t> last = LoadSized(section, kBase + ((bucket + 1) << width_log2), width_log2);
    // Buckets that overlap would make the work quadratic.
    if (!first || !last || *first < previous_end || *last < *first) {
      return absl::DataLossError("the buckets of a native hash table are not in order");
    }
    previous_end = *last;
    uint64_t entry = kBase + *first;
    const uint64_t end = kBase + *last;
    while (entry < end) {
      // One byte of the hash code, then the distance of the payload from the distance itself.
      const std::optional<NativeSigned> distance = ReadNativeSigned(section, entry + 1);
      if (!distance) return absl::DataLossError("a native hash table is cut off");
      const int64_t payload = static_cast<int64_t>(entry) + 1 + distance->value;
      if (payload < 0 || static_cast<uint64_t>(payload) >= section.size()) {
        return absl::DataLossError("a native hash table leads outside its section");
      }
      RETURN_IF_ERROR(visit(static_cast<uint64_t>(payload)));
      entry = distance->next;
    }
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
