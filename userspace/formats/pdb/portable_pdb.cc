#include "formats/pdb/portable_pdb.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/pe/blob_cursor.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using Guid = std::array<uint8_t, 16>;

// GUIDs as they are stored: the first three numbers have their low byte first.
constexpr Guid kSha1Guid = {0xEC, 0x16, 0x18, 0xFF, 0x5E, 0xAA, 0x10, 0x4D,
                            0x87, 0xF7, 0x6F, 0x49, 0x63, 0x83, 0x34, 0x60};
constexpr Guid kSha256Guid = {0x0F, 0xD0, 0x29, 0x88, 0xB8, 0x11, 0x13, 0x42,
                              0x87, 0x8B, 0x77, 0x0E, 0x85, 0x97, 0xAC, 0x16};
constexpr Guid kSourceLinkGuid = {0x56, 0x05, 0x11, 0xCC, 0x91, 0xA0, 0x38, 0x4D,
                                  0x9F, 0xEC, 0x25, 0xAB, 0x9A, 0x35, 0x1A, 0x6A};

// HasCustomDebugInformation of row 1 of Module: 5 bits of tag, Module has 7.
constexpr uint32_t kModuleParent = 1 << 5 | 7;
// Compilers write five: source link, options, references, and two of Visual Basic.
constexpr uint32_t kMaxModuleRows = 256;

// Blob ::= separator part+, where a part is the index of a blob with its text.
absl::StatusOr<std::string> DocumentName(const MetadataTables& tables, std::span<const std::byte> blob) {
  constexpr size_t kMaxBlobBytes = 4 * PortablePdb::kMaxDocumentNameBytes;  // an index has 4 bytes at most
  if (blob.size() > kMaxBlobBytes) return absl::DataLossError("the name of a document has too many parts");
  BlobCursor cursor(blob);
  const uint8_t separator = cursor.Byte();
  // As System.Reflection.Metadata has it; compilers write slashes and backslashes.
  if (separator >= 0x80) return absl::DataLossError("the separator of a document's name is no character");
  std::string name;
  for (bool first = true; cursor.remaining() > 0; first = false) {
    const uint32_t index = cursor.Number();
    const std::optional<std::span<const std::byte>> part = tables.Blob(index);
    if (cursor.failed() || !part) return absl::DataLossError("the name of a document is damaged");
    if (part->size() >= PortablePdb::kMaxDocumentNameBytes - name.size()) {
      return absl::DataLossError("the name of a document is too long");
    }
    if (!first && separator != 0) name += static_cast<char>(separator);
    absl::StrAppend(&name, AsText(*part));
  }
  if (cursor.failed()) return absl::DataLossError("the name of a document is damaged");
  return name;
}

}  // namespace

absl::StatusOr<PortablePdb> PortablePdb::Open(std::span<const std::byte> file) {
  if (absl::StartsWith(AsText(file), "Microsoft C/C++ MSF ")) {
    return absl::UnimplementedError("a PDB in the format of Windows; portable ones are read");
  }
  ASSIGN_OR_RETURN(const MetadataTables tables, MetadataTables::Parse(file));
  PdbId id;
  const std::optional<std::span<const std::byte>> raw = SliceAt(tables.pdb_stream(), 0, id.bytes.size());
  if (!raw) return absl::DataLossError("the metadata is no portable PDB");
  std::memcpy(id.bytes.data(), raw->data(), id.bytes.size());
  return PortablePdb(tables, id);
}

absl::StatusOr<std::vector<SequencePoint>> PortablePdb::Points(uint32_t method_rid) const {
  const std::optional<uint32_t> document = tables_.Cell(MetadataTable::kMethodDebugInformation, method_rid, 0);
  const std::optional<uint32_t> index = tables_.Cell(MetadataTable::kMethodDebugInformation, method_rid, 1);
  if (!document || !index || *index == 0) return absl::NotFoundError("the method has no lines");
  const std::optional<std::span<const std::byte>> blob = tables_.Blob(index);
  if (!blob) return absl::DataLossError("the sequence points of a method lie outside the PDB");
  absl::StatusOr<std::vector<SequencePoint>> points = DecodeSequencePoints(*blob, *document, document_count());
  if (points.ok() && points->empty()) return absl::NotFoundError("the method has no lines");
  return points;
}

absl::StatusOr<PdbDocument> PortablePdb::Document(uint32_t row) const {
  const std::optional<uint32_t> name_index = tables_.Cell(MetadataTable::kDocument, row, 0);
  if (!name_index) return absl::NotFoundError("there is no such document");
  const std::optional<std::span<const std::byte>> name_blob = tables_.Blob(name_index);
  if (!name_blob) return absl::DataLossError("the name of a document lies outside the PDB");
  ASSIGN_OR_RETURN(std::string name, DocumentName(tables_, *name_blob));
  PdbDocument document{.name = std::move(name)};
  const std::optional<Guid> algorithm = tables_.Guid(tables_.Cell(MetadataTable::kDocument, row, 1));
  const std::optional<std::span<const std::byte>> hash = tables_.Blob(tables_.Cell(MetadataTable::kDocument, row, 2));
  if (!hash) return document;
  if (algorithm == kSha1Guid && hash->size() == 20) document.hash_algorithm = PdbHashAlgorithm::kSha1;
  if (algorithm == kSha256Guid && hash->size() == 32) document.hash_algorithm = PdbHashAlgorithm::kSha256;
  if (document.hash_algorithm != PdbHashAlgorithm::kNone) document.hash.assign(hash->begin(), hash->end());
  return document;
}

std::optional<uint32_t> PortablePdb::KickoffOf(uint32_t move_next_rid) const {
  const uint32_t row = tables_.FindRow(MetadataTable::kStateMachineMethod, 0, move_next_rid);
  const uint32_t kickoff = tables_.Cell(MetadataTable::kStateMachineMethod, row, 1).value_or(0);
  if (kickoff == 0 || kickoff > method_count()) return std::nullopt;
  return kickoff;
}

std::optional<absl::string_view> PortablePdb::SourceLink() const {
  constexpr MetadataTable kTable = MetadataTable::kCustomDebugInformation;
  const uint32_t first = tables_.FindRow(kTable, 0, kModuleParent);
  if (first == 0) return std::nullopt;
  // Rows of one parent are neighbours in a sorted table; an unsorted one, of which FindRow knows the bound, has them
  // anywhere.
  uint32_t last = tables_.rows(kTable);
  if (tables_.sorted(kTable)) last = std::min(last, first + kMaxModuleRows);
  for (uint32_t row = first; row <= last; ++row) {
    if (tables_.Cell(kTable, row, 0) != kModuleParent) continue;
    if (tables_.Guid(tables_.Cell(kTable, row, 1)) != kSourceLinkGuid) continue;
    const std::optional<std::span<const std::byte>> text = tables_.Blob(tables_.Cell(kTable, row, 2));
    if (text) return AsText(*text);
  }
  return std::nullopt;
}

}  // namespace clrsampler
