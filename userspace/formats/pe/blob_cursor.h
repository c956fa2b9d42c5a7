// Reads a blob of ECMA-335 metadata (a signature, the sequence points of a PDB) from its beginning to its end.
#ifndef CLRSAMPLER_FORMATS_PE_BLOB_CURSOR_H_
#define CLRSAMPLER_FORMATS_PE_BLOB_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "formats/byte_reader.h"

namespace clrsampler {

// A position in a blob. A read behind the end gives 0 and sets failed().
class BlobCursor {
 public:
  explicit BlobCursor(std::span<const std::byte> bytes, uint64_t offset = 0) : bytes_(bytes), offset_(offset) {}

  uint8_t Byte() {
    const std::optional<uint8_t> byte = LoadAt<uint8_t>(bytes_, offset_);
    if (!byte) {
      failed_ = true;
      return 0;
    }
    ++offset_;
    return *byte;
  }
  // II.23.2: compressed unsigned integer.
  uint32_t Number() { return Compressed().value; }
  // II.23.2: compressed signed integer. The bits are rotated left by one, so that the lowest one is the sign.
  int32_t SignedNumber() {
    const CompressedBits raw = Compressed();
    const int32_t value = static_cast<int32_t>(raw.value >> 1);
    return (raw.value & 1) != 0 ? value - (int32_t{1} << (raw.bits - 1)) : value;
  }
  // Element type, without the flag bit 0x80 that R2R sets on some.
  uint8_t Element() { return Byte() & 0x7F; }
  uint8_t PeekElement() const { return LoadAt<uint8_t>(bytes_, offset_).value_or(0) & 0x7F; }

  bool failed() const { return failed_; }
  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return offset_ < bytes_.size() ? bytes_.size() - offset_ : 0; }

 private:
  struct CompressedBits {
    uint32_t value;
    int bits;
  };

  CompressedBits Compressed() {
    const uint32_t first = Byte();
    if (first < 0x80) return {first, 7};
    if (first < 0xC0) return {(first & 0x3F) << 8 | Byte(), 14};
    if (first >= 0xE0) failed_ = true;  // no integer begins so
    uint32_t value = first & 0x1F;
    for (int i = 0; i < 3; ++i) value = value << 8 | Byte();
    return {value, 29};
  }

  std::span<const std::byte> bytes_;
  uint64_t offset_;
  bool failed_ = false;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PE_BLOB_CURSOR_H_
