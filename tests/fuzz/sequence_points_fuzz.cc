// The points of one method by themselves: what is decoded is in bounds and sorted, whatever the row beside it says.
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/pdb/sequence_points.h"
#include "unit/formats/pdb/pdb_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::span<const std::byte> blob(reinterpret_cast<const std::byte*>(data) + 2, size - 2);
  const uint32_t document_count = data[1];
  const auto points = clrsampler::DecodeSequencePoints(blob, data[0], document_count);
  if (!points.ok() || points->empty()) return 0;
  if (3 * points->size() > blob.size()) __builtin_trap();  // the shortest record has three bytes
  if (!clrsampler::WrongPoints(*points, document_count).empty()) __builtin_trap();
  return 0;
}
