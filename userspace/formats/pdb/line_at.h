// The line of an instruction.
#ifndef CLRSAMPLER_FORMATS_PDB_LINE_AT_H_
#define CLRSAMPLER_FORMATS_PDB_LINE_AT_H_

#include <cstdint>
#include <optional>
#include <span>

#include "formats/pdb/sequence_points.h"

namespace clrsampler {

// The last point at or before `il_offset` that is not hidden, as in stack traces of the runtime (dotnet/runtime
// src/libraries/System.Diagnostics.StackTrace/src/System/Diagnostics/StackTraceSymbols.cs). `points` are a method's, in
// the order of their offsets. nullopt: there is none, so the instruction has no line.
std::optional<SequencePoint> LineAt(std::span<const SequencePoint> points, uint32_t il_offset);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PDB_LINE_AT_H_
