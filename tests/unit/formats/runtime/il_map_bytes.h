// Writes debug information as the runtimes do, after the description of the forms.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_RUNTIME_IL_MAP_BYTES_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_RUNTIME_IL_MAP_BYTES_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clrsampler {

// Numbers as groups of three bits, filled up to a whole byte.
inline std::string Nibbles(std::initializer_list<uint32_t> numbers) {
  std::vector<uint8_t> nibbles;
  for (const uint32_t number : numbers) {
    int shift = 0;
    while ((uint64_t{number} >> shift) > 7) shift += 3;
    for (; shift >= 0; shift -= 3) {
      nibbles.push_back(static_cast<uint8_t>((number >> shift & 7) | (shift == 0 ? 0 : 8)));
    }
  }
  if (nibbles.size() % 2 != 0) nibbles.push_back(0);
  std::string bytes;
  for (size_t i = 0; i < nibbles.size(); i += 2) bytes += static_cast<char>(nibbles[i] | nibbles[i + 1] << 4);
  return bytes;
}

struct PackedEntry {
  uint32_t sources;
  uint32_t native_delta;
  uint32_t il_value;  // IL offset + 3
};

// The head of a packed map and its entries, the lowest bit first.
inline std::string Packed(uint32_t source_bits, uint32_t native_bits, uint32_t il_bits,
                          const std::vector<PackedEntry>& entries) {
  std::string bytes = Nibbles({static_cast<uint32_t>(entries.size()), native_bits - 1, il_bits - 1});
  uint32_t filled = 0;
  const auto append = [&](uint64_t value, uint32_t bits) {
    for (uint32_t i = 0; i < bits; ++i, ++filled) {
      if (filled % 8 == 0) bytes += '\0';
      if ((value >> i & 1) != 0) bytes.back() = static_cast<char>(bytes.back() | 1 << filled % 8);
    }
  };
  for (const PackedEntry& entry : entries) {
    append(entry.sources, source_bits);
    append(entry.native_delta, native_bits);
    append(entry.il_value, il_bits);
  }
  return bytes;
}

inline std::string LittleEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_RUNTIME_IL_MAP_BYTES_H_
