// Reads the bytes of one instruction, in order. A read past their end fails, and all later ones with it.
#ifndef CLRSAMPLER_FORMATS_X64_CODE_CURSOR_H_
#define CLRSAMPLER_FORMATS_X64_CODE_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace clrsampler {

class X64CodeCursor {
 public:
  explicit X64CodeCursor(std::span<const std::byte> code) : code_(code) {}

  bool ok() const { return ok_; }
  size_t at() const { return at_; }
  bool AtEnd() const { return at_ >= code_.size(); }
  // Both only where bytes are left.
  uint8_t Peek() const { return static_cast<uint8_t>(code_[at_]); }
  void Advance() { ++at_; }

  void Fail() { ok_ = false; }
  // 0 where it fails.
  uint8_t Byte() {
    if (AtEnd()) {
      ok_ = false;
      return 0;
    }
    return static_cast<uint8_t>(code_[at_++]);
  }
  template <typename T>
  int32_t Signed() {
    T value = 0;
    if (code_.size() - at_ < sizeof value) {
      ok_ = false;
      return 0;
    }
    std::memcpy(&value, code_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  void Skip(size_t bytes) {
    if (code_.size() - at_ < bytes) {
      ok_ = false;
      return;
    }
    at_ += bytes;
  }

 private:
  std::span<const std::byte> code_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_X64_CODE_CURSOR_H_
