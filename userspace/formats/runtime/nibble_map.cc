#include "formats/runtime/nibble_map.h"

namespace clrsampler {
namespace {

constexpr uint64_t kBucketBytes = 32;
constexpr uint64_t kNibbles = 8;  // in a word

bool IsPointer(NibbleMapVersion version, uint32_t word) {
  return version == NibbleMapVersion::k2 && (word & 0xF) > kNibbles;
}

// Relative to the map's base; the low nibble counts in steps of 4 bytes, 9 meaning 0.
uint64_t PointedStart(uint32_t word) { return (word & ~uint32_t{0xF}) + ((word & 0xF) - kNibbles - 1) * 4; }

uint64_t Start(uint64_t bucket, uint32_t nibble) { return bucket * kBucketBytes + (nibble - 1) * 4; }

// The last start among the nibbles of `word`, whose lowest nibble is that of `bucket`.
std::optional<uint64_t> LastStart(uint32_t word, uint64_t bucket) {
  for (; word != 0; word >>= 4, --bucket) {
    const uint32_t nibble = word & 0xF;
    if (nibble > kNibbles) return std::nullopt;  // no such offset: the map is being written or is not one
    if (nibble != 0) return Start(bucket, nibble);
    if (bucket == 0) break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> FindMethodStart(NibbleMapVersion version, uint64_t offset, const NibbleWord& word) {
  const uint64_t bucket = offset / kBucketBytes;
  const uint64_t index = bucket / kNibbles;
  const std::optional<uint32_t> here = word(index);
  if (!here) return std::nullopt;
  if (IsPointer(version, *here)) return PointedStart(*here);

  uint32_t nibbles = *here >> (28 - (bucket % kNibbles) * 4);
  const uint32_t own = nibbles & 0xF;
  if (own > kNibbles) return std::nullopt;
  if (own != 0 && Start(bucket, own) <= offset) return Start(bucket, own);
  nibbles >>= 4;
  if (nibbles != 0) return LastStart(nibbles, bucket - 1);

  const uint64_t furthest = version == NibbleMapVersion::k2 ? 1 : kMaxWordsBack;
  for (uint64_t back = 1; back <= furthest && back <= index; ++back) {
    const std::optional<uint32_t> before = word(index - back);
    if (!before) return std::nullopt;
    if (IsPointer(version, *before)) return PointedStart(*before);
    if (*before != 0) return LastStart(*before, (index - back) * kNibbles + kNibbles - 1);
  }
  return std::nullopt;
}

void AppendMethodStarts(NibbleMapVersion version, uint64_t index, uint32_t word, std::vector<uint64_t>& starts) {
  if (word == 0 || IsPointer(version, word)) return;
  for (uint64_t i = 0; i < kNibbles; ++i) {
    const uint32_t nibble = word >> (28 - 4 * i) & 0xF;
    if (nibble != 0 && nibble <= kNibbles) starts.push_back(Start(index * kNibbles + i, nibble));
  }
}

}  // namespace clrsampler
