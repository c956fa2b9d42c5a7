// The integers of the runtime's debug information: groups of four bits, the low half of a byte first.
//
// Source: dotnet/runtime src/coreclr/inc/nibblestream.h (8.0 to 11.0, unchanged). A group has three bits of the value,
// the most significant group first, and its top bit says that another one follows.
#ifndef CLRSAMPLER_FORMATS_RUNTIME_NIBBLE_READER_H_
#define CLRSAMPLER_FORMATS_RUNTIME_NIBBLE_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace clrsampler {

// Borrows the bytes. One thread.
class NibbleReader {
 public:
  static constexpr int kMaxGroups = 11;  // of a number of 32 bits
  static constexpr size_t kMaxNumberBytes = (kMaxGroups + 1) / 2;

  explicit NibbleReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // nullopt: the bytes end before the number does, it has more than 32 bits, or begins with a group that says nothing.
  std::optional<uint32_t> Number() {
    uint64_t value = 0;
    for (int group = 0; group < kMaxGroups; ++group) {
      const std::optional<uint32_t> nibble = Nibble();
      if (!nibble || (group == 0 && *nibble == kMore)) return std::nullopt;
      value = value << 3 | (*nibble & ~kMore);
      if ((*nibble & kMore) != 0) continue;
      if (value > UINT32_MAX) return std::nullopt;
      return static_cast<uint32_t>(value);
    }
    return std::nullopt;
  }

  // Bytes that were read at least in half.
  size_t bytes_used() const { return (nibbles_ + 1) / 2; }
  // The next read begins on a byte. Whether the half that is left out, if any, is 0, as writers leave it.
  bool AlignToByte() {
    if (nibbles_ % 2 == 0) return true;
    const std::optional<uint32_t> rest = Nibble();
    return rest && *rest == 0;
  }

 private:
  static constexpr uint32_t kMore = 8;

  std::optional<uint32_t> Nibble() {
    if (nibbles_ / 2 >= bytes_.size()) return std::nullopt;
    const auto byte = static_cast<uint32_t>(bytes_[nibbles_ / 2]);
    return (nibbles_++ % 2 == 0 ? byte : byte >> 4) & 0xF;
  }

  std::span<const std::byte> bytes_;
  size_t nibbles_ = 0;  // read
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_RUNTIME_NIBBLE_READER_H_
