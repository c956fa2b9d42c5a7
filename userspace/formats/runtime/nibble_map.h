// Where the method begins that an address of a JIT code heap belongs to: the runtime's nibble map.
//
// Source: dotnet/runtime src/coreclr/inc/nibblemapmacros.h and vm/nibblemap.* (8.0 to 10.0), and
// docs/design/datacontracts/ExecutionManager.md. A heap is cut into 32-byte buckets; each has a nibble, eight in a
// 32-bit word, the first in the high bits: 0 = no method begins here, n = one begins at byte (n - 1) * 4. In version 2
// a word whose low nibble is above 8 stands for eight buckets that lie inside one method and tells where it begins.
#ifndef CLRSAMPLER_FORMATS_RUNTIME_NIBBLE_MAP_H_
#define CLRSAMPLER_FORMATS_RUNTIME_NIBBLE_MAP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace clrsampler {

enum class NibbleMapVersion : uint8_t {
  k1 = 1,  // .NET 8 and 9: empty words are searched backwards
  k2 = 2,  // .NET 10: at most one word back
};

// The word at an index of the map; nullopt: it can't be read.
using NibbleWord = std::function<std::optional<uint32_t>(uint64_t index)>;

// The start of the method at or before `offset`, both in bytes from the map's base. nullopt: none, or a word that was
// needed could not be read. At most kMaxWordsBack words are read.
std::optional<uint64_t> FindMethodStart(NibbleMapVersion version, uint64_t offset, const NibbleWord& word);

// The starts that one word tells, as bytes from the map's base.
void AppendMethodStarts(NibbleMapVersion version, uint64_t index, uint32_t word, std::vector<uint64_t>& starts);

// 1 MiB of one method's code; the largest seen in the test programs has 30 KiB.
constexpr uint64_t kMaxWordsBack = 4096;
constexpr uint64_t kNibbleWordBytes = 256;  // of code that one word stands for

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_RUNTIME_NIBBLE_MAP_H_
