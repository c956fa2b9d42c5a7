// UNWIND_INFO of managed code on x86-64, JIT-compiled and ready-to-run alike: the Windows x64 layout with the codes
// that CoreCLR writes on Unix (src/coreclr/inc/win64unwind.h, src/coreclr/jit/unwindamd64.cpp, .NET 8 to 10).
#ifndef CLRSAMPLER_FORMATS_UNWIND_UNWIND_INFO_H_
#define CLRSAMPLER_FORMATS_UNWIND_UNWIND_INFO_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace clrsampler {

inline constexpr size_t kRuntimeFunctionBytes = 12;  // of RUNTIME_FUNCTION

enum class UnwindOp : uint8_t {
  kPush,      // of the register; sp falls by 8
  kAlloc,     // sp falls by `value`
  kSetFrame,  // frame register = sp + value
  kSave,      // the register lies at `value` from where sp is after the prologue
};

struct UnwindCode {
  uint8_t prologue_offset = 0;  // behind the instruction
  UnwindOp op = UnwindOp::kAlloc;
  uint8_t reg = 0;  // 5: rbp
  uint32_t value = 0;

  friend bool operator==(const UnwindCode&, const UnwindCode&) = default;
};

constexpr uint8_t kUnwindRbp = 5;

// Methods for on-stack replacement have it since .NET 11. They are jumped to and push what the call of the patchpoint
// pushed before (`push rax`, one byte), so this word belongs to the frame of the method's first version.
inline bool IsReturnSlotOfPatchpoint(const UnwindCode& code) {
  return code.op == UnwindOp::kAlloc && code.value == 8 && code.prologue_offset == 1;
}

struct UnwindInfo {
  uint8_t prologue_bytes = 0;
  uint8_t frame_register = 0;                // 0: none; 5: rbp, which marks functions that move sp in their body
  uint32_t frame_offset = 0;                 // bytes
  absl::InlinedVector<UnwindCode, 8> codes;  // the last action of the prologue first
  size_t bytes = 0;                          // of its fixed part and codes, where the GC information or a chain begins
  bool chained = false;                      // followed by the RUNTIME_FUNCTION that this is a part of

  friend bool operator==(const UnwindInfo&, const UnwindInfo&) = default;

  // The largest one: 255 codes, and the RUNTIME_FUNCTION behind them.
  static constexpr size_t kMaxBytes = 4 + 2 * 256 + 12;

  // `bytes` may be longer than the structure. DataLoss: too short, another version, an op that nobody writes.
  static absl::StatusOr<UnwindInfo> Parse(std::span<const std::byte> bytes);

  // Up to kMaxBytes of an image from this RVA on, fewer where it ends. They need to hold until the next call only.
  using Reader = absl::FunctionRef<std::span<const std::byte>(uint32_t rva)>;
  // With the codes of the functions that it is chained to behind its own, as done before its first instruction: their
  // prologue_offset is 0. DataLoss as above, or a chain of more than a few.
  static absl::StatusOr<UnwindInfo> ParseWithChain(Reader read, uint32_t rva);
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_UNWIND_UNWIND_INFO_H_
