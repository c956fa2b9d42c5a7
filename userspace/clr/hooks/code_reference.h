// The place in its own image that an instruction refers to by an address.
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

// A function that does nothing but pass its arguments on without the first one, which is `this`. Or it passes on a
// constant instead, as RestartEE's slot does in .NET 11, where all callers of the other function said the same.
struct JumpThunk {
  VirtualAddress target;
  // One letter for each argument that is passed on: '4' or '8', the bytes of it that are moved; 'c', a constant.
  std::string arguments;
};

// How compileMethod is compiled: where it keeps what is of use once it is done (bpf/jit_hooks.bpf.c reads it there).
enum class CompileForm : uint8_t {
  // .NET 8 to 10. The address of the entry's variable in rbx or x19, the flags at rbp-64 or x29-32.
  kEntryInRegister,
  // .NET 11. That address at rbp-128, the flags at rbp-80; on arm64 the address at x29-312, that of the code's size at
  // x29-320, the flags at x29-80, the result in w27.
  kEntryOnFrame,
};

// Where compileMethod is done.
struct JitReturnSite {
  uint64_t offset = 0;  // of the instruction, from the function's first byte
  CompileForm form = CompileForm::kEntryInRegister;
};

// Where the garbage collector keeps what it knows of the collection at hand: the static `settings` of gc_heap
// (src/coreclr/gc/gcpriv.h), of which only these fields are of use. Alike in .NET 8, 9 and 10 on both machines:
//   +0 u64 gc_index, +8 i32 condemned_generation, +12 promotion, +16 i32 compaction, +20 loh_compaction,
//   +24 heap_expansion, +28 i32 concurrent, +60 i32 reason
struct GcSettings {
  static constexpr uint64_t kCondemned = 8, kConcurrent = 28, kReason = 60, kBytes = 64;
  VirtualAddress at;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_CODE_REFERENCE_H_
