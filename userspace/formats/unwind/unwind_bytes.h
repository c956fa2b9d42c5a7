// Unwind data as bytes, read from where only some bytes can be had: UNWIND_INFO (unwind_info.h) with its chain, and the
// .xdata record of arm64 (arm64_unwind.h).
//
// Pure: the caller says how to read. The bytes are hostile, and may be another method's by the next read.
#ifndef CLRSAMPLER_FORMATS_UNWIND_UNWIND_BYTES_H_
#define CLRSAMPLER_FORMATS_UNWIND_UNWIND_BYTES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "formats/unwind/unwind_info.h"

namespace clrsampler {

// With its chain; x86-64 codes of one part have 528 at most. Records of arm64 with a
// thousand epilogues are larger, and are not read.
inline constexpr size_t kMaxUnwindPartBytes = 4096;

// Copies memory of a process; false: not all of it could be read.
using ReadBytes = absl::FunctionRef<bool(uint64_t address, std::span<std::byte> bytes)>;
using UnwindInfoBytes = std::array<std::byte, UnwindInfo::kMaxBytes>;

// The UNWIND_INFO at an address, with the RUNTIME_FUNCTION behind it where it is chained. No byte behind that is read,
// since the memory may end there. Empty: it can't be read.
std::span<const std::byte> ReadUnwindInfoBytes(ReadBytes read, uint64_t address, UnwindInfoBytes& bytes);

// The UNWIND_INFO at an RVA. Where it is chained, the RUNTIME_FUNCTION behind it and what that leads to follow, as
// FrameStepsOfX64 takes them. DataLoss: as UnwindInfo::ParseWithChain, or more than kMaxUnwindPartBytes.
absl::StatusOr<std::string> UnwindBytes(UnwindInfo::Reader read, uint32_t rva);

// The .xdata record at an address, as FrameStepsOfArm64 takes it. No byte behind it is read. DataLoss: it can't be
// read, Arm64UnwindInfo can't be parsed of it, or it has more than kMaxUnwindPartBytes.
absl::StatusOr<std::string> Arm64UnwindBytes(ReadBytes read, uint64_t address);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_UNWIND_UNWIND_BYTES_H_
