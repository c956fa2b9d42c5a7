// What an instruction refers to by an address of its own image.
#ifndef CLRSAMPLER_CLR_HOOKS_CODE_REFERENCE_H_
#define CLRSAMPLER_CLR_HOOKS_CODE_REFERENCE_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "formats/elf/address_conversion.h"

namespace clrsampler {

struct CodeReference {
  enum class Kind : uint8_t {
    kBranch,  // a direct call or jump
    kData,    // reads, writes or takes the address
  };
  Kind kind = Kind::kBranch;
  VirtualAddress target;
};

using CodeReferenceSink = absl::FunctionRef<void(const CodeReference&)>;

// A function that does nothing but pass its arguments on without the first one, which is `this`.
struct JumpThunk {
  VirtualAddress target;
  // One letter for each argument that is passed on: '4' or '8', the bytes of it that are moved.
  std::string arguments;
};

// Where compileMethod is done.
struct JitReturnSite {
  uint64_t offset = 0;           // of the instruction, from the function's first byte
  int64_t flags_from_frame = 0;  // of the u64 with the flags, from the frame pointer
};

// Where the garbage collector keeps what it knows of the collection at hand: the static `settings` of gc_heap
// (src/coreclr/gc/gcpriv.h), of which only these fields are of use. Alike in .NET 8, 9 and 10 on both machines:
//   +0 u64 gc_index, +8 i32 condemned_generation, +12 promotion, +16 i32 compaction, +20 loh_compaction,
//   +24 heap_expansion, +28 i32 concurrent, +60 i32 reason
struct GcSettings {
  static constexpr uint64_t kCondemned = 8, kCompaction = 16, kConcurrent = 28, kReason = 60, kBytes = 64;
  VirtualAddress at;

  VirtualAddress gc_index() const { return at; }
  VirtualAddress compaction() const { return {at.value + kCompaction}; }
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_CODE_REFERENCE_H_
