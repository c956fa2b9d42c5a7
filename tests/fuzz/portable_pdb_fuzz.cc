// A PDB that lies beside an assembly, or inside of it: everything that it answers is in bounds, sorted, and the same
// when it is asked twice (unit/formats/pdb/pdb_properties.h).
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/pdb/embedded_pdb.h"
#include "formats/pdb/portable_pdb.h"
#include "formats/pe/pdb_reference.h"
#include "unit/formats/pdb/pdb_properties.h"

namespace {

constexpr uint32_t kMostRows = 50;
constexpr uint64_t kMaxInflated = 1 << 20;

void Check(std::span<const std::byte> bytes) {
  const auto pdb = clrsampler::PortablePdb::Open(bytes);
  if (!pdb.ok()) return;
  const absl::string_view wrong = clrsampler::WrongPdb(*pdb, kMostRows);
  if (wrong.empty()) return;
  std::fprintf(stderr, "%.*s\n", static_cast<int>(wrong.size()), wrong.data());
  __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  Check(bytes);
  const auto image = clrsampler::PeImage::Parse(bytes);
  if (!image.ok()) return 0;
  const auto embedded = clrsampler::EmbeddedPdb(*image);
  if (!embedded) return 0;
  const auto inflated = clrsampler::InflateEmbeddedPdb(*embedded, kMaxInflated);
  if (!inflated.ok()) return 0;
  if (inflated->size() > kMaxInflated) __builtin_trap();
  Check(*inflated);
  return 0;
}
