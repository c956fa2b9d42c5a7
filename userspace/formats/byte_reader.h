// Bounded reading of foreign bytes. Nothing here can read outside the span it was given, whatever the input says.
#ifndef CLRSAMPLER_FORMATS_BYTE_READER_H_
#define CLRSAMPLER_FORMATS_BYTE_READER_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace clrsampler {

// Random access: a little-endian value at an offset, or nullopt when it does not lie inside `bytes`.
template <typename T>
std::optional<T> LoadAt(std::span<const std::byte> bytes, uint64_t offset) {
  static_assert(std::is_integral_v<T>);
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// The same of a file in either byte order.
template <typename T>
std::optional<T> LoadAt(std::span<const std::byte> bytes, uint64_t offset, bool swap) {
  std::optional<T> value = LoadAt<T>(bytes, offset);
  if (value && swap) {
    auto raw = std::bit_cast<std::array<std::byte, sizeof(T)>>(*value);
    std::reverse(raw.begin(), raw.end());
    value = std::bit_cast<T>(raw);
  }
  return value;
}

// The part [offset, offset + length) of `bytes`, or nullopt when it is not all inside.
inline std::optional<std::span<const std::byte>> SliceAt(std::span<const std::byte> bytes, uint64_t offset,
                                                         uint64_t length) {
  if (offset > bytes.size() || bytes.size() - offset < length) return std::nullopt;
  return bytes.subspan(offset, length);
}

// The NUL-terminated text at `offset`, without the NUL; nullopt when no NUL lies inside `bytes` or within `max_length`.
inline std::optional<absl::string_view> TextAt(std::span<const std::byte> bytes, uint64_t offset,
                                               size_t max_length = SIZE_MAX) {
  if (offset >= bytes.size()) return std::nullopt;
  const char* begin = reinterpret_cast<const char*>(bytes.data()) + offset;
  const size_t room = bytes.size() - offset;
  const size_t limit = room < max_length ? room : max_length;
  const void* end = std::memchr(begin, 0, limit);
  if (end == nullptr) return std::nullopt;
  return absl::string_view(begin, static_cast<size_t>(static_cast<const char*>(end) - begin));
}

inline absl::string_view AsText(std::span<const std::byte> bytes) {
  return absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

inline std::span<const std::byte> AsBytes(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_BYTE_READER_H_
