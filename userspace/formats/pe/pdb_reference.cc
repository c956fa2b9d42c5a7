#include "formats/pe/pdb_reference.h"

#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr uint32_t kCodeViewMagic = 0x53445352;     // "RSDS"
constexpr uint32_t kEmbeddedPdbMagic = 0x4244504D;  // "MPDB"
constexpr uint16_t kPortablePdbMinor = 0x504D;
constexpr size_t kMaxPathBytes = 4096;
constexpr size_t kMaxAlgorithmBytes = 32;

// A GUID's first three numbers are stored with their low byte first.
std::array<uint8_t, 16> GuidInReadingOrder(const PdbId& id) {
  constexpr size_t kOrder[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
  std::array<uint8_t, 16> guid;
  for (size_t i = 0; i < guid.size(); ++i) guid[i] = id.bytes[kOrder[i]];
  return guid;
}

std::string GuidDigits(const PdbId& id) {
  const std::array<uint8_t, 16> guid = GuidInReadingOrder(id);
  return absl::BytesToHexString(AsText(std::as_bytes(std::span(guid))));
}

}  // namespace

std::string PdbIdText(const PdbId& id) {
  const std::string guid = GuidDigits(id);
  return absl::StrCat(guid.substr(0, 8), "-", guid.substr(8, 4), "-", guid.substr(12, 4), "-", guid.substr(16, 4), "-",
                      guid.substr(20), "-", absl::Hex(PdbStamp(id), absl::kZeroPad8));
}

uint32_t PdbStamp(const PdbId& id) { return *LoadAt<uint32_t>(std::as_bytes(std::span(id.bytes)), 16); }

std::string PdbServerKey(const PdbId& id) { return absl::StrCat(GuidDigits(id), "ffffffff"); }

std::vector<PdbReference> PdbReferences(const PeImage& image) {
  std::vector<PdbReference> references;
  for (const PeDebugEntry& entry : image.DebugEntries()) {
    if (entry.type != kCodeViewDebugEntryType || entry.minor != kPortablePdbMinor) continue;
    const std::optional<std::span<const std::byte>> guid = SliceAt(entry.data, 4, 16);
    const std::optional<uint32_t> age = LoadAt<uint32_t>(entry.data, 20);
    const std::optional<absl::string_view> path = TextAt(entry.data, 24, kMaxPathBytes);
    if (LoadAt<uint32_t>(entry.data, 0) != kCodeViewMagic || !guid || !age || !path) continue;
    PdbReference reference;
    std::memcpy(reference.id.bytes.data(), guid->data(), guid->size());
    std::memcpy(reference.id.bytes.data() + guid->size(), &entry.stamp, sizeof entry.stamp);
    reference.age = *age;
    reference.path = std::string(*path);
    references.push_back(std::move(reference));
  }
  return references;
}

std::vector<PdbChecksum> PdbChecksums(const PeImage& image) {
  std::vector<PdbChecksum> checksums;
  for (const PeDebugEntry& entry : image.DebugEntries()) {
    if (entry.type != kPdbChecksumDebugEntryType) continue;
    const std::optional<absl::string_view> algorithm = TextAt(entry.data, 0, kMaxAlgorithmBytes);
    if (algorithm) checksums.push_back({*algorithm, entry.data.subspan(algorithm->size() + 1)});
  }
  return checksums;
}

std::optional<std::span<const std::byte>> EmbeddedPdb(const PeImage& image) {
  for (const PeDebugEntry& entry : image.DebugEntries()) {
    if (entry.type != kEmbeddedPdbDebugEntryType) continue;
    if (LoadAt<uint32_t>(entry.data, 0) == kEmbeddedPdbMagic) return entry.data;
  }
  return std::nullopt;
}

}  // namespace clrsampler
