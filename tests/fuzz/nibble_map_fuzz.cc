// A target's nibble map: the first byte chooses the version, two choose the address, the rest are words.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "formats/runtime/nibble_map.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const auto version = data[0] % 2 == 0 ? clrsampler::NibbleMapVersion::k1 : clrsampler::NibbleMapVersion::k2;
  const uint64_t offset = (uint64_t{data[1]} << 8 | data[2]) * 7;
  std::vector<uint32_t> words((size - 3) / 4);
  if (!words.empty()) std::memcpy(words.data(), data + 3, 4 * words.size());
  const auto require = [](bool condition) {
    if (!condition) __builtin_trap();
  };
  uint64_t reads = 0;
  const auto start = clrsampler::FindMethodStart(version, offset, [&](uint64_t index) -> std::optional<uint32_t> {
    require(index <= offset / clrsampler::kNibbleWordBytes);
    require(++reads <= clrsampler::kMaxWordsBack + 1);
    if (index >= words.size()) return std::nullopt;
    return words[index];
  });
  if (version == clrsampler::NibbleMapVersion::k1 && start) {
    require(*start <= offset);
    // It is the last of the starts that the map lists at or before the address, where all of its nibbles make sense.
    std::vector<uint64_t> starts;
    bool sound = true;
    for (size_t i = 0; i < words.size(); ++i) {
      for (uint32_t rest = words[i]; rest != 0; rest >>= 4) sound &= (rest & 0xF) <= 8;
      clrsampler::AppendMethodStarts(version, i, words[i], starts);
    }
    uint64_t last = UINT64_MAX;
    for (const uint64_t one : starts) last = one <= offset ? one : last;
    if (sound) require(last == *start);
  }
  return 0;
}
