// Tells which code the line tables of a file are about (.debug_line, DWARF 5, segment 6.2), without their lines.
//
// The state machine is followed for addresses alone: 2 ns a row, where decoding all of a row takes 70 ns (libdw 0.188).
// So one table can be found and decoded for an address, without the units (.debug_info), which are the larger part of
// a debug file.
#ifndef CLRSAMPLER_FORMATS_ELF_LINE_SEQUENCES_H_
#define CLRSAMPLER_FORMATS_ELF_LINE_SEQUENCES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace clrsampler {

// Code that follows each other without a gap, [begin, end), as linked.
struct LineSequence {
  uint64_t begin = 0, end = 0;
  uint64_t table = 0;  // where its table begins in the section

  friend bool operator==(const LineSequence&, const LineSequence&) = default;
};

// All of a section, by their beginning. Those at address 0 are left out: there linkers leave what they threw away.
// Errors: kUnimplemented for tables that need their unit to be read (before DWARF 5) and for machines with other
// addresses; kDataLoss; kResourceExhausted beyond kMaxLineSequences.
inline constexpr size_t kMaxLineSequences = 4 << 20;
absl::StatusOr<std::vector<LineSequence>> ListLineSequences(std::span<const std::byte> debug_line);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_LINE_SEQUENCES_H_
