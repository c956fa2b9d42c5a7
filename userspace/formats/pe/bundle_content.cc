#include "formats/pe/bundle_content.h"

#include <optional>

#include "formats/byte_reader.h"
#include "formats/pe/raw_deflate.h"

namespace clrsampler {

absl::StatusOr<std::vector<std::byte>> InflateBundleEntry(std::span<const std::byte> host, const BundleEntry& entry,
                                                          uint64_t max_bytes) {
  const std::optional<std::span<const std::byte>> input = SliceAt(host, entry.offset, entry.compressed_bytes);
  if (!input) return absl::DataLossError("a bundle entry lies outside its host");
  return InflateRaw(*input, entry.bytes, max_bytes, "a bundle entry");
}

}  // namespace clrsampler
