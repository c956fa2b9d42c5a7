#include "formats/pdb/embedded_pdb.h"

#include <optional>

#include "formats/byte_reader.h"
#include "formats/pe/raw_deflate.h"

namespace clrsampler {

absl::StatusOr<std::vector<std::byte>> InflateEmbeddedPdb(std::span<const std::byte> entry, uint64_t max_bytes) {
  const std::optional<uint32_t> bytes = LoadAt<uint32_t>(entry, 4);
  if (!bytes) return absl::DataLossError("the embedded PDB is cut off");
  return InflateRaw(entry.subspan(8), *bytes, max_bytes, "an embedded PDB");
}

}  // namespace clrsampler
