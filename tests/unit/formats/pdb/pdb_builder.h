// Small portable PDBs, and blobs of theirs, written by the rules of dotnet/runtime
// docs/design/specs/PortablePdb-Metadata.md: for what no compiler writes.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_PDB_PDB_BUILDER_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_PDB_PDB_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/pe/metadata_tables.h"
#include "unit/formats/pe/metadata_builder.h"

namespace clrsampler {

// ECMA-335 II.23.2. With `bytes` the number is as wide, whatever it needs.
inline std::string Compressed(uint32_t value, int bytes = 0) {
  if (bytes == 0) bytes = value < 0x80 ? 1 : value < 0x4000 ? 2 : 4;
  const uint32_t marked = bytes == 1 ? value : bytes == 2 ? value | 0x8000 : value | 0xC0000000;
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(marked >> (8 * i));
  return out;
}

inline std::string CompressedSigned(int32_t value) {
  const int bits = value >= -64 && value < 64 ? 7 : value >= -8192 && value < 8192 ? 14 : 29;
  const uint32_t mask = (1u << bits) - 1;
  const uint32_t rotated = (static_cast<uint32_t>(value) << 1 & mask) | (value < 0 ? 1 : 0);
  return Compressed(rotated, bits == 7 ? 1 : bits == 14 ? 2 : 4);
}

// A blob of sequence points, record by record. Lines and columns are as in the blob: the first ones absolute, the next
// ones relative.
class PointsBlob {
 public:
  PointsBlob() { blob_ = Compressed(0); }
  PointsBlob& InitialDocument(uint32_t row) { return Append(Compressed(row)); }
  PointsBlob& Document(uint32_t row) { return Append(Compressed(0) + Compressed(row)); }
  PointsBlob& Hidden(uint32_t distance) { return Append(Compressed(distance) + Compressed(0) + Compressed(0)); }
  PointsBlob& Visible(uint32_t distance, uint32_t lines, int32_t columns, int32_t line, int32_t column) {
    Append(Compressed(distance) + Compressed(lines));
    Append(lines == 0 ? Compressed(static_cast<uint32_t>(columns)) : CompressedSigned(columns));
    if (!std::exchange(visible_, true)) {
      return Append(Compressed(static_cast<uint32_t>(line)) + Compressed(static_cast<uint32_t>(column)));
    }
    return Append(CompressedSigned(line) + CompressedSigned(column));
  }
  operator std::string() const { return blob_; }  // NOLINT(google-explicit-constructor)

 private:
  PointsBlob& Append(const std::string& bytes) {
    blob_ += bytes;
    return *this;
  }
  std::string blob_;
  bool visible_ = false;
};

// Rows get the numbers 1, 2, ... in the order of the calls. Indexes of heaps have 2 bytes.
class PdbBuilder {
 public:
  uint32_t Blob(const std::string& bytes) {
    const uint32_t index = static_cast<uint32_t>(blobs_.size());
    blobs_ += Compressed(static_cast<uint32_t>(bytes.size())) + bytes;
    return index;
  }
  uint32_t Guid(const std::string& bytes) {
    guids_ += bytes;
    return static_cast<uint32_t>(guids_.size() / 16);
  }
  // `separator` 0: none.
  uint32_t Document(char separator, const std::vector<std::string>& parts) {
    std::string name(1, separator);
    for (const std::string& part : parts) name += Compressed(part.empty() ? 0 : Blob(part));
    return DocumentNamed(Blob(name));
  }
  uint32_t DocumentNamed(uint32_t name_blob, uint32_t algorithm = 0, uint32_t hash_blob = 0) {
    return Append(MetadataTable::kDocument, {name_blob, algorithm, hash_blob, 0});
  }
  uint32_t Method(uint32_t document, const std::string& points) {
    return MethodAt(document, points.empty() ? 0 : Blob(points));
  }
  uint32_t MethodAt(uint32_t document, uint32_t points_blob) {
    return Append(MetadataTable::kMethodDebugInformation, {document, points_blob});
  }
  uint32_t StateMachine(uint32_t move_next, uint32_t kickoff) {
    return Append(MetadataTable::kStateMachineMethod, {move_next, kickoff});
  }
  // `parent`: a coded index.
  uint32_t Custom(uint32_t parent, uint32_t kind, uint32_t value) {
    return Append(MetadataTable::kCustomDebugInformation, {parent, kind, value});
  }
  // How many rows a table of the assembly has; more than 65,535 make indexes of it 4 bytes wide.
  PdbBuilder& Referenced(MetadataTable table, uint32_t rows) {
    referenced_[static_cast<int>(table)] = rows;
    return *this;
  }
  PdbBuilder& Unsorted() {
    sorted_ = 0;
    return *this;
  }
  // The header says this instead of the truth.
  PdbBuilder& ClaimRows(MetadataTable table, uint32_t rows) {
    claimed_rows_[static_cast<int>(table)] = rows;
    return *this;
  }
  PdbBuilder& ClaimHeapSizes(uint8_t flags) {
    heap_sizes_ = flags;
    return *this;
  }

  std::string Build() const {
    std::string pdb;
    for (int i = 0; i < 20; ++i) pdb += static_cast<char>('a' + i);
    PutLittleEndian(pdb, 4, 0);
    uint64_t mask = 0;
    for (const auto& [table, rows] : referenced_) mask |= uint64_t{1} << table;
    PutLittleEndian(pdb, 8, mask);
    for (const auto& [table, rows] : referenced_) PutLittleEndian(pdb, 4, rows);
    return MetadataRoot(
        {{"#Pdb", pdb}, {"#~", Tables()}, {"#Strings", std::string(1, '\0')}, {"#GUID", guids_}, {"#Blob", blobs_}});
  }

 private:
  uint32_t Append(MetadataTable table, std::vector<uint32_t> cells) {
    auto& rows = tables_[static_cast<int>(table)];
    rows.push_back(std::move(cells));
    return static_cast<uint32_t>(rows.size());
  }
  uint32_t Rows(MetadataTable table) const {
    const auto found = tables_.find(static_cast<int>(table));
    return found == tables_.end() ? 0 : static_cast<uint32_t>(found->second.size());
  }
  uint32_t ReferencedRows(MetadataTable table) const {
    const auto found = referenced_.find(static_cast<int>(table));
    return found == referenced_.end() ? 0 : found->second;
  }
  // Bytes of the columns of a table.
  std::vector<int> Widths(MetadataTable table) const {
    const int method = ReferencedRows(MetadataTable::kMethodDef) > 0xFFFF ? 4 : 2;
    switch (table) {
      case MetadataTable::kMethodDebugInformation:
        return {Rows(MetadataTable::kDocument) > 0xFFFF ? 4 : 2, 2};
      case MetadataTable::kStateMachineMethod:
        return {method, method};
      case MetadataTable::kCustomDebugInformation:
        return {ReferencedRows(MetadataTable::kMethodDef) > 0x7FF ? 4 : 2, 2, 2};
      default:
        return {2, 2, 2, 2};
    }
  }
  std::string Tables() const {
    std::string stream;
    PutLittleEndian(stream, 4, 0);
    stream += '\2';
    stream += '\0';
    stream += static_cast<char>(heap_sizes_);
    stream += '\1';
    uint64_t valid = 0;
    for (const auto& [table, rows] : tables_) valid |= uint64_t{1} << table;
    PutLittleEndian(stream, 8, valid);
    PutLittleEndian(stream, 8, sorted_);
    for (const auto& [table, rows] : tables_) {
      const auto claimed = claimed_rows_.find(table);
      PutLittleEndian(stream, 4, claimed == claimed_rows_.end() ? rows.size() : claimed->second);
    }
    for (const auto& [table, rows] : tables_) {
      const std::vector<int> widths = Widths(static_cast<MetadataTable>(table));
      for (const std::vector<uint32_t>& row : rows) {
        for (size_t i = 0; i < row.size(); ++i) PutLittleEndian(stream, widths[i], row[i]);
      }
    }
    return stream;
  }

  std::map<int, std::vector<std::vector<uint32_t>>> tables_;
  std::map<int, uint32_t> referenced_, claimed_rows_;
  std::string blobs_ = std::string(1, '\0'), guids_;
  uint8_t heap_sizes_ = 0;
  uint64_t sorted_ = uint64_t{1} << static_cast<int>(MetadataTable::kStateMachineMethod) |
                     uint64_t{1} << static_cast<int>(MetadataTable::kCustomDebugInformation);
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_PDB_PDB_BUILDER_H_
