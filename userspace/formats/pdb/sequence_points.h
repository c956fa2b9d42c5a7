// The sequence points of a method: which instructions of its IL were compiled from which lines.
//
// Layout: dotnet/runtime docs/design/specs/PortablePdb-Metadata.md, "Sequence Points Blob". Pure.
#ifndef CLRSAMPLER_FORMATS_PDB_SEQUENCE_POINTS_H_
#define CLRSAMPLER_FORMATS_PDB_SEQUENCE_POINTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace clrsampler {

// Lines and columns count from 1. A point holds from its offset up to that of the next one.
struct SequencePoint {
  uint32_t il_offset = 0;  // bytes
  uint32_t document = 0;   // row of the Document table, never 0
  // 0: hidden, code that no line stands for. Then columns and the last line are 0 too.
  uint32_t line = 0;
  uint16_t column = 0;
  uint32_t end_line = 0;    // not before `line`
  uint16_t end_column = 0;  // of the first character behind the statement

  bool hidden() const { return line == 0; }
  friend bool operator==(const SequencePoint&, const SequencePoint&) = default;
};

// The largest method of FSharp.Core 11.0.101 has 985 points, that of .NET's own libraries (11.0.0) 485.
constexpr size_t kMaxSequencePoints = 1'000'000;
// Lines and IL offsets are less than this.
constexpr uint32_t kSequencePointLimit = 0x20000000;

// `blob`: as MethodDebugInformation refers to it. `document`: of that row, 0 where the blob says it itself. Offsets of
// the result ascend without equals, and its documents are rows in [1, `document_count`]. DataLoss: the blob is damaged.
// A statement in line 0, which no source has, counts as hidden.
absl::StatusOr<std::vector<SequencePoint>> DecodeSequencePoints(std::span<const std::byte> blob, uint32_t document,
                                                                uint32_t document_count);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PDB_SEQUENCE_POINTS_H_
