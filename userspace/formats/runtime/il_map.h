// Finds the instruction of the intermediate language behind an offset of a method's native code.
//
// The JIT and crossgen2 write such a map for each body that they compile; `il_map_decoder.h` reads it. Meaning of the
// entries: dotnet/runtime src/coreclr/inc/cordebuginfo.h (8.0 to 11.0). A map knows the offsets of the method itself:
// code of a callee that was inlined stands for the call.
#ifndef CLRSAMPLER_FORMATS_RUNTIME_IL_MAP_H_
#define CLRSAMPLER_FORMATS_RUNTIME_IL_MAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace clrsampler {

// The code from `native_offset` to the next entry, 8 bytes.
struct IlMapEntry {
  // Values of `il_offset` that are no offset.
  static constexpr int32_t kNoMapping = -1;
  static constexpr int32_t kProlog = -2;
  static constexpr int32_t kEpilog = -3;

  // Bits of `sources`.
  static constexpr uint32_t kCallInstruction = 1;  // a call inside a statement, which only debuggers ask for
  static constexpr uint32_t kStackEmpty = 2;       // nothing is on the evaluation stack there
  static constexpr uint32_t kAsync = 4;            // where an async method of .NET 11 suspends or goes on

  static constexpr int kNativeBits = 29;
  static constexpr uint32_t kMaxNativeOffset = (1u << kNativeBits) - 1;

  uint32_t native_offset : kNativeBits;  // bytes from where the method begins; funclets follow the body
  uint32_t sources : 32 - kNativeBits;
  int32_t il_offset;  // bytes from the first instruction, or one of the constants
};
static_assert(sizeof(IlMapEntry) == 8);

// The code that an address of a frame means.
enum class FramePlace : uint8_t {
  kLeaf,    // the instruction at the address: where a thread was interrupted
  kCaller,  // the call before the address: a return address
};

// Where an IL offset is taken from.
enum class IlPlaceKind : uint8_t {
  kInstruction,
  kProlog,  // the method's first instruction stands for it
  kEpilog,  // the instruction before it in native code stands for it: the runtime's map does not say which one returns
};

struct IlPlace {
  uint32_t il_offset = 0;
  IlPlaceKind kind = IlPlaceKind::kInstruction;

  friend bool operator==(const IlPlace&, const IlPlace&) = default;
};

// Immutable once made, so any number of threads may ask it.
class IlMap {
 public:
  // A method without a map: no look-up finds anything.
  IlMap() = default;

  // Takes the entries in the order in which the runtime has them. Those of call instructions are left out, as all
  // readers of the runtime do. DataLoss: the first entry is not at 0, they are not in the order of native offsets, one
  // lies outside the `code_bytes` of the method, or an IL offset is impossible.
  static absl::StatusOr<IlMap> Make(std::vector<IlMapEntry> entries, uint32_t code_bytes);

  // `native_offset` in bytes from where the method begins. nullopt: outside the code, or the code there stands for no
  // instruction.
  std::optional<IlPlace> Lookup(uint32_t native_offset, FramePlace place) const;

  std::span<const IlMapEntry> entries() const { return entries_; }
  uint32_t code_bytes() const { return code_bytes_; }
  size_t heap_bytes() const { return entries_.capacity() * sizeof entries_[0]; }

 private:
  IlMap(std::vector<IlMapEntry> entries, uint32_t code_bytes) : entries_(std::move(entries)), code_bytes_(code_bytes) {}

  std::vector<IlMapEntry> entries_;  // ascending by native offset; of equal ones the last counts
  uint32_t code_bytes_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_RUNTIME_IL_MAP_H_
