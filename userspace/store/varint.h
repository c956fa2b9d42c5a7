// Numbers of any size in few bytes (LEB128), as the store's blobs hold them, and their bounded reading.
#ifndef CLRSAMPLER_STORE_VARINT_H_
#define CLRSAMPLER_STORE_VARINT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "formats/byte_reader.h"

namespace clrsampler {

class VarintWriter {
 public:
  void Number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  void Text(absl::string_view text) {
    Number(text.size());
    bytes_.append(text.data(), text.size());
  }
  const std::string& bytes() const { return bytes_; }
  std::string Take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Bytes of a file that may be damaged. The first thing that does not fit makes the reader fail for good: it is at its
// end then, and everything reads as 0 or "". Look at ok() before what was read is believed.
class VarintReader {
 public:
  explicit VarintReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return rest_.empty(); }

  uint64_t Number() {
    uint64_t value = 0;
    for (size_t i = 0; i < rest_.size() && i < 10; ++i) {
      const auto byte = static_cast<uint64_t>(rest_[i]);
      if (i == 9 && byte > 1) break;
      value |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        rest_ = rest_.subspan(i + 1);
        return value;
      }
    }
    return Fail();
  }
  // A number that has to be less than `limit`.
  uint64_t Below(uint64_t limit) {
    const uint64_t value = Number();
    return value < limit ? value : Fail();
  }
  uint32_t Number32() { return static_cast<uint32_t>(Below(uint64_t{1} << 32)); }
  // How many things follow, of which each takes at least `bytes_each`: never more than there is room for.
  size_t Count(size_t bytes_each) {
    const uint64_t count = Number();
    return count <= rest_.size() / bytes_each ? static_cast<size_t>(count) : static_cast<size_t>(Fail());
  }
  absl::string_view Text(size_t max_bytes) {
    const uint64_t size = Number();
    if (size > rest_.size() || size > max_bytes) {
      Fail();
      return "";
    }
    const absl::string_view text = AsText(rest_.first(size));
    rest_ = rest_.subspan(size);
    return text;
  }
  uint64_t Fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_VARINT_H_
