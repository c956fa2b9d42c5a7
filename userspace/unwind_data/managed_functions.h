// The parts that both sources of managed unwind data share: bounds, and unwind data that lies in a process.
#ifndef CLRSAMPLER_UNWIND_DATA_MANAGED_FUNCTIONS_H_
#define CLRSAMPLER_UNWIND_DATA_MANAGED_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "formats/elf/cfi_rows.h"
#include "formats/unwind/arm64_code.h"
#include "formats/unwind/unwind_bytes.h"
#include "formats/unwind/unwind_info.h"
#include "unwind/code_finder.h"

namespace clrsampler {

// Code that is kept of one function. Larger ones are stepped out of as if their epilogues were not known: those lie
// at their ends. The largest one of the shipped frameworks has 26 KB.
constexpr uint64_t kMaxCodeBytes = 64 << 10;
// The bound of one process, where code is copied out of its memory. A large application has 20 MB.
constexpr uint64_t kMaxCopiedCodeBytes = uint64_t{64} << 20;

// The unwind data at base + rva, with that of its chain. nullopt: not readable, or damaged.
std::optional<UnwindInfo> ReadUnwindInfo(ReadBytes read, uint64_t base, uint32_t rva);

// Whether this is the unwind data of a method that replaces another one while it runs. It begins with a frame, that of
// the method's first version, so that something was done before its first instruction. No other function's does. Gives
// the size of that frame, from behind the place where rbp was saved.
std::optional<uint32_t> OsrFrameBytes(const UnwindInfo& unwind);

// How a leaf at `offset` leaves the epilogue that it is in, of which `code`, the function's from its start on, tells
// (formats/unwind/x64_code.h). nullopt: it is in none.
std::optional<CfiRow> RowOfEpilogue(std::span<const std::byte> code, uint64_t function_bytes, uint64_t offset);

// The row of a leaf on arm64 whose return address is in the link register; nullopt: it is not, or not known.
std::optional<CfiRow> LinkRegisterRow(const Arm64Leaf& leaf);

// Managed code on arm64, where `address` is in or at `code`, which lies at `begin`; empty: not known. In a leaf the
// code around it says where its return address is.
CodeAt ManagedArm64(std::span<const std::byte> code, uint64_t begin, uint64_t address);

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_DATA_MANAGED_FUNCTIONS_H_
