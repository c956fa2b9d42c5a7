// A portable PDB that an assembly has inside of itself, compressed.
#ifndef CLRSAMPLER_FORMATS_PDB_EMBEDDED_PDB_H_
#define CLRSAMPLER_FORMATS_PDB_EMBEDDED_PDB_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace clrsampler {

// The largest PDB of .NET's own libraries has 2.6 MB (System.Private.CoreLib of 11.0.0).
constexpr uint64_t kMaxEmbeddedPdbBytes = 64 << 20;

// `entry`: what EmbeddedPdb() of formats/pe/pdb_reference.h found, "MPDB" with its size and raw deflate behind it. The
// result is the bytes of a PDB, for PortablePdb::Open. ResourceExhausted: larger than `max_bytes`. DataLoss: damaged,
// or not of the size that it says.
absl::StatusOr<std::vector<std::byte>> InflateEmbeddedPdb(std::span<const std::byte> entry,
                                                          uint64_t max_bytes = kMaxEmbeddedPdbBytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PDB_EMBEDDED_PDB_H_
