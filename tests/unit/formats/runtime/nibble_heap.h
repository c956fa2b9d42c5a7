// A code heap of methods at random places with its nibble map, written as the runtime writes it
// (dotnet/runtime src/coreclr/vm/codeman.cpp, NibbleMapSet: 8 and 9; NibbleMapSetUnlocked with a code size: 10).
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_RUNTIME_NIBBLE_HEAP_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_RUNTIME_NIBBLE_HEAP_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "formats/runtime/nibble_map.h"

namespace clrsampler {

struct NibbleHeap {
  struct Method {
    uint64_t start = 0;  // from the map's base
    uint64_t bytes = 0;
  };

  NibbleMapVersion version = NibbleMapVersion::k1;
  std::vector<Method> methods;  // by start; never two in a bucket of 32 bytes
  std::vector<uint32_t> words;

  explicit NibbleHeap(NibbleMapVersion map_version, uint64_t bytes = 0)
      : version(map_version), words(bytes / 256 + 1) {}

  void Add(uint64_t start, uint64_t bytes) {
    const Method method{start, bytes};
    methods.insert(std::upper_bound(methods.begin(), methods.end(), method,
                                    [](const Method& a, const Method& b) { return a.start < b.start; }),
                   method);
    if (words.size() <= (start + bytes) / 256) words.resize((start + bytes) / 256 + 1);
    uint64_t word = start / 256;
    const uint32_t shift = 28 - 4 * (start / 32 % 8);
    words[word] = (words[word] & ~(0xFu << shift)) | static_cast<uint32_t>(start % 32 / 4 + 1) << shift;
    if (version == NibbleMapVersion::k1) return;
    // Every word whose 256 bytes the method covers wholly points back to it.
    const uint32_t pointer = static_cast<uint32_t>((start & ~uint64_t{15}) + (start % 16 / 4 + 9));
    for (++word; (word + 1) * 256 <= start + bytes; ++word) words[word] = pointer;
  }

  // Small methods, some that cover many words, and holes.
  static NibbleHeap Random(NibbleMapVersion version, std::mt19937_64& random, uint64_t bytes) {
    NibbleHeap heap(version, bytes);
    uint64_t at = random() % 600 & ~uint64_t{3};
    while (at < bytes) {
      const uint64_t size = random() % 8 == 0 ? 1 + random() % 6000 : 1 + random() % 300;
      if (at + size > bytes) break;
      heap.Add(at, size);
      at = (at + size + 8 + 31) & ~uint64_t{31};  // a pointer to the next one's header stands before it
      at += (random() % 5 == 0 ? random() % 3000 : random() % 32) & ~uint64_t{3};
    }
    return heap;
  }

  // The last method that begins at or before `offset`, wherever it ends; nullptr: none.
  const Method* At(uint64_t offset) const {
    const Method* found = nullptr;
    for (const Method& method : methods) {
      if (method.start <= offset) found = &method;
    }
    return found;
  }
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_RUNTIME_NIBBLE_HEAP_H_
