// Reading forward through DWARF's encodings, as .eh_frame and .debug_frame use them.
#ifndef CLRSAMPLER_FORMATS_ELF_DWARF_CURSOR_H_
#define CLRSAMPLER_FORMATS_ELF_DWARF_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "formats/byte_reader.h"
#include "formats/elf/address_conversion.h"

namespace clrsampler {

// DW_EH_PE_*: the low four bits are the form, the next three what it is relative to, the highest means "stored there".
struct PointerEncoding {
  static constexpr uint8_t kFormMask = 0x0f, kRelationMask = 0x70;
  static constexpr uint8_t kAbsolute = 0x00, kUnsigned2 = 0x02, kUnsigned4 = 0x03, kUnsigned8 = 0x04;
  static constexpr uint8_t kSigned2 = 0x0a, kSigned4 = 0x0b, kSigned8 = 0x0c;
  static constexpr uint8_t kPcRelative = 0x10, kDataRelative = 0x30, kIndirect = 0x80, kOmitted = 0xff;
};

// Remembers failure instead of stopping: the result counts only when `ok` at the end.
class DwarfCursor {
 public:
  DwarfCursor(std::span<const std::byte> bytes, VirtualAddress base) : bytes_(bytes), base_(base) {}

  bool ok() const { return ok_; }
  void Fail() { ok_ = false; }
  bool at_end() const { return !ok_ || at_ == bytes_.size(); }
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

  std::span<const std::byte> TakeBlock(uint64_t length) {
    const size_t from = at_;
    Skip(length);
    return ok_ ? bytes_.subspan(from, length) : std::span<const std::byte>();
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
    switch (encoding & PointerEncoding::kFormMask) {
      case PointerEncoding::kAbsolute:
      case PointerEncoding::kUnsigned8:
      case PointerEncoding::kSigned8:
        return Take<uint64_t>();
      case PointerEncoding::kUnsigned2:
        return Take<uint16_t>();
      case PointerEncoding::kUnsigned4:
        return Take<uint32_t>();
      case PointerEncoding::kSigned2:
        return static_cast<uint64_t>(int64_t{Take<int16_t>()});
      case PointerEncoding::kSigned4:
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
    if ((encoding & PointerEncoding::kIndirect) != 0) ok_ = false;
    switch (encoding & PointerEncoding::kRelationMask) {
      case 0:
        return {value};
      case PointerEncoding::kPcRelative:
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

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_DWARF_CURSOR_H_
