// Unwind data of managed code on arm64, JIT-compiled and ready-to-run alike: the .xdata record of "ARM64 exception
// handling" (Microsoft's ABI), with the codes that CoreCLR writes on Unix (src/coreclr/jit/unwindarm64.cpp, .NET 9 to
// 11).
//
// A code stands for one instruction of the prologue. CoreCLR writes no packed form of this data, so it is not read.
// Epilogues have codes too; they are stepped over.
#ifndef CLRSAMPLER_FORMATS_UNWIND_ARM64_UNWIND_H_
#define CLRSAMPLER_FORMATS_UNWIND_ARM64_UNWIND_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace clrsampler {

enum class Arm64UnwindOp : uint8_t {
  kNop,         // nothing that concerns the caller
  kAlloc,       // sp falls by `value`
  kSave,        // the registers lie at sp + `value`
  kPush,        // sp falls by `value`, and then the registers lie at sp
  kSetFrame,    // x29 = sp + `value`
  kSignReturn,  // x30 is signed, with the caller's sp
};

struct Arm64UnwindCode {
  Arm64UnwindOp op = Arm64UnwindOp::kNop;
  uint8_t first = 0;   // DWARF number of the first register
  uint8_t second = 0;  // of the one 8 bytes above it; 0: there is none
  uint32_t value = 0;  // bytes, a multiple of 8

  friend bool operator==(const Arm64UnwindCode&, const Arm64UnwindCode&) = default;
};

struct Arm64UnwindInfo {
  uint32_t function_bytes = 0;
  std::vector<Arm64UnwindCode> codes;  // as they are executed
  // So many of them were executed before the function: it is a part of a larger one.
  size_t before_function = 0;
  size_t bytes = 0;  // of the whole record, with the address of a handler where there is one

  friend bool operator==(const Arm64UnwindInfo&, const Arm64UnwindInfo&) = default;

  static constexpr size_t kHeaderBytes = 8;  // with the extension, which not every record has

  // Bytes of the record that begins with these. DataLoss: they are too few, or it has another version.
  static absl::StatusOr<size_t> RecordBytes(std::span<const std::byte> header);
  // `bytes` may be longer than the record. DataLoss: too short, another version, a code that nobody writes.
  static absl::StatusOr<Arm64UnwindInfo> Parse(std::span<const std::byte> bytes);
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_UNWIND_ARM64_UNWIND_H_
