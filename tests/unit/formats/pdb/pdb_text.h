// Everything that a PDB says, one fact a line, as tests/apps/oracle_pdb prints it of System.Reflection.Metadata.
// Columns are separated by tabs; texts that may have line breaks, hashes and ids are hexadecimal.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_PDB_PDB_TEXT_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_PDB_PDB_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/pdb/embedded_pdb.h"
#include "formats/pdb/portable_pdb.h"
#include "formats/pe/pdb_reference.h"
#include "formats/pe/pe_image.h"

namespace clrsampler {

inline std::string HexText(std::span<const std::byte> bytes) { return absl::BytesToHexString(AsText(bytes)); }
inline std::string HexText(const PdbId& id) { return HexText(std::as_bytes(std::span(id.bytes))); }

inline std::string DocumentText(const PortablePdb& pdb, uint32_t row) {
  constexpr absl::string_view kAlgorithms[] = {"none", "sha1", "sha256"};
  const absl::StatusOr<PdbDocument> document = pdb.Document(row);
  if (!document.ok()) return absl::StrCat("document\t", row, "\t", document.status().ToString(), "\n");
  return absl::StrCat("document\t", row, "\t", kAlgorithms[static_cast<size_t>(document->hash_algorithm)], "\t",
                      HexText(document->hash), "\t", document->name, "\n");
}

inline std::string MethodText(const PortablePdb& pdb, uint32_t rid) {
  std::string text;
  if (const std::optional<uint32_t> kickoff = pdb.KickoffOf(rid))
    absl::StrAppend(&text, "kickoff\t", rid, "\t", *kickoff, "\n");
  const absl::StatusOr<std::vector<SequencePoint>> points = pdb.Points(rid);
  if (!points.ok()) {
    if (!absl::IsNotFound(points.status()))
      absl::StrAppend(&text, "point\t", rid, "\t", points.status().ToString(), "\n");
    return text;
  }
  for (const SequencePoint& point : *points) {
    absl::StrAppend(&text, "point\t", rid, "\t", point.il_offset, "\t", point.document, "\t", point.line, "\t");
    absl::StrAppend(&text, point.column, "\t", point.end_line, "\t", point.end_column, "\n");
  }
  return text;
}

inline std::string PdbText(const PortablePdb& pdb) {
  std::string text = absl::StrCat("id\t", HexText(pdb.id()), "\n");
  if (const auto link = pdb.SourceLink()) absl::StrAppend(&text, "source-link\t", absl::BytesToHexString(*link), "\n");
  for (uint32_t row = 1; row <= pdb.document_count(); ++row) text += DocumentText(pdb, row);
  for (uint32_t rid = 1; rid <= pdb.method_count(); ++rid) text += MethodText(pdb, rid);
  return text;
}

// The text of an assembly: what leads to its PDB, and the PDB if it is inside.
inline std::string AssemblyText(const PeImage& image) {
  std::string text;
  for (const PdbReference& reference : PdbReferences(image)) {
    absl::StrAppend(&text, "reference\t", HexText(reference.id), "\t", reference.age, "\t", reference.path, "\n");
  }
  for (const PdbChecksum& checksum : PdbChecksums(image)) {
    absl::StrAppend(&text, "checksum\t", checksum.algorithm, "\t", HexText(checksum.hash), "\n");
  }
  const std::optional<std::span<const std::byte>> embedded = EmbeddedPdb(image);
  if (!embedded) return text;
  const absl::StatusOr<std::vector<std::byte>> bytes = InflateEmbeddedPdb(*embedded);
  if (!bytes.ok()) return absl::StrCat(text, bytes.status().ToString(), "\n");
  const absl::StatusOr<PortablePdb> pdb = PortablePdb::Open(*bytes);
  return absl::StrCat(text, pdb.ok() ? PdbText(*pdb) : pdb.status().ToString() + "\n");
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_PDB_PDB_TEXT_H_
