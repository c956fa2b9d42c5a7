// A portable PDB: the lines and source files of the methods of one assembly.
//
// Layout: dotnet/runtime docs/design/specs/PortablePdb-Metadata.md (format 1.0), on top of ECMA-335 II.24. Left out:
// local variables, imports, and sources that are inside the PDB.
//
// A PortablePdb is a view: it holds a span of the PDB's bytes, which must outlive it, and copies only the header (2
// KB). The bytes may change while it is used (a mapped file): every value is bounds-checked after it was read. Any
// number of threads may read. Methods are row numbers of the assembly's MethodDef table, documents those of the PDB's
// Document table; both count from 1. Texts are as the file has them, and may hold any bytes.
#ifndef CLRSAMPLER_FORMATS_PDB_PORTABLE_PDB_H_
#define CLRSAMPLER_FORMATS_PDB_PORTABLE_PDB_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/pdb/sequence_points.h"
#include "formats/pe/metadata_tables.h"
#include "formats/pe/pdb_reference.h"

namespace clrsampler {

enum class PdbHashAlgorithm : uint8_t { kNone, kSha1, kSha256 };

// A source file, as the compiler saw it.
struct PdbDocument {
  // "/_/src/Program.cs", "D:\a\_work\1\s\Program.cs": a path of the machine that compiled, or what a path map made of
  // it. `#line` can give any text.
  std::string name;
  PdbHashAlgorithm hash_algorithm = PdbHashAlgorithm::kNone;
  std::vector<std::byte> hash;  // of the file's bytes: 20 with kSha1, 32 with kSha256, none with kNone
};

class PortablePdb {
 public:
  static constexpr size_t kMaxDocumentNameBytes = 4096;  // PATH_MAX

  // Unimplemented: a Windows PDB. DataLoss: no portable PDB, or its tables do not lie inside `file`.
  static absl::StatusOr<PortablePdb> Open(std::span<const std::byte> file);

  // The code that opened the PDB for an assembly compares this with PdbReference::id, and takes no lines if they
  // differ.
  const PdbId& id() const { return id_; }
  uint32_t method_count() const { return tables_.rows(MetadataTable::kMethodDebugInformation); }
  uint32_t document_count() const { return tables_.rows(MetadataTable::kDocument); }

  // Decoded anew at each call. NotFound: no such method, or one without lines. DataLoss: damaged.
  absl::StatusOr<std::vector<SequencePoint>> Points(uint32_t method_rid) const;

  // NotFound: no such document. DataLoss: its name is damaged, or longer than kMaxDocumentNameBytes.
  absl::StatusOr<PdbDocument> Document(uint32_t row) const;

  // The method that was written, of the MoveNext method that the compiler made of an async method or an iterator.
  // nullopt: no such method.
  std::optional<uint32_t> KickoffOf(uint32_t move_next_rid) const;

  // The SourceLink document (source_link.h), JSON in UTF-8; nullopt: none.
  std::optional<absl::string_view> SourceLink() const;

 private:
  explicit PortablePdb(const MetadataTables& tables, const PdbId& id) : tables_(tables), id_(id) {}

  MetadataTables tables_;
  PdbId id_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PDB_PORTABLE_PDB_H_
