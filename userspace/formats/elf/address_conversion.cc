#include "formats/elf/address_conversion.h"

namespace clrsampler {

std::optional<VirtualAddress> ToVirtualAddress(std::span<const LoadSegment> segments, FileOffset offset) {
  std::optional<VirtualAddress> data;
  for (const LoadSegment& segment : segments) {
    if (offset < segment.offset || offset.value - segment.offset.value >= segment.file_bytes) continue;
    const VirtualAddress address{segment.address.value + (offset.value - segment.offset.value)};
    if (segment.executable) return address;
    if (!data) data = address;
  }
  return data;
}

std::optional<FileOffset> ToFileOffset(std::span<const LoadSegment> segments, VirtualAddress address) {
  for (const LoadSegment& segment : segments) {
    if (address < segment.address || address.value - segment.address.value >= segment.file_bytes) continue;
    return FileOffset{segment.offset.value + (address.value - segment.address.value)};
  }
  return std::nullopt;
}

}  // namespace clrsampler
