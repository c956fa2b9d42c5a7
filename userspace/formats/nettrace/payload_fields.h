// Fields of an event's payload, from its front on: packed, little-endian, without anything between them.
#ifndef CLRSAMPLER_FORMATS_NETTRACE_PAYLOAD_FIELDS_H_
#define CLRSAMPLER_FORMATS_NETTRACE_PAYLOAD_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "formats/byte_reader.h"

namespace clrsampler {

// After a field that is not all there everything is empty, and ok() is false.
class PayloadFields {
 public:
  explicit PayloadFields(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::span<const std::byte> Bytes(uint64_t count);
  template <typename T>
  T Number() {
    return LoadAt<T>(Bytes(sizeof(T)), 0).value_or(0);
  }
  uint64_t Pointer(uint32_t pointer_bytes) { return pointer_bytes == 8 ? Number<uint64_t>() : Number<uint32_t>(); }
  // UTF-16 units up to a 0, as UTF-8. A text that is longer than `max_units` ends after so many of them, and with
  // U+2026 (...).
  std::string Text(size_t max_units);

  bool ok() const { return ok_; }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NETTRACE_PAYLOAD_FIELDS_H_
