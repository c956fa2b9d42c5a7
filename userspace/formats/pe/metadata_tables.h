// A read-only view of ECMA-335 metadata: the tables that names need, in place, without copies.
//
// Layout: ECMA-335 partition II.22 to II.24, the extra data word of the Roslyn "#~" header flag 0x40, and the tables
// and the "#Pdb" stream of portable PDBs (dotnet/runtime docs/design/specs/PortablePdb-Metadata.md), which formats/pdb
// reads. Both stream forms ("#~" and the uncompressed "#-") are read. The span must outlive the view and may change
// under it; every access is checked. Row numbers (rids) count from 1, as in tokens. Texts are UTF-8 as stored, not
// validated.
#ifndef CLRSAMPLER_FORMATS_PE_METADATA_TABLES_H_
#define CLRSAMPLER_FORMATS_PE_METADATA_TABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

enum class MetadataTable : uint8_t {
  kModule = 0x00,
  kTypeRef = 0x01,
  kTypeDef = 0x02,
  kFieldPtr = 0x03,
  kField = 0x04,
  kMethodPtr = 0x05,
  kMethodDef = 0x06,
  kMemberRef = 0x0A,
  kCustomAttribute = 0x0C,
  kModuleRef = 0x1A,
  kTypeSpec = 0x1B,
  kAssembly = 0x20,
  kAssemblyRef = 0x23,
  kNestedClass = 0x29,
  kGenericParam = 0x2A,
  kDocument = 0x30,  // from here: of portable PDBs
  kMethodDebugInformation = 0x31,
  kStateMachineMethod = 0x36,
  kCustomDebugInformation = 0x37,
};

struct MetadataToken {
  MetadataTable table = MetadataTable::kModule;
  uint32_t rid = 0;

  uint32_t value() const { return static_cast<uint32_t>(table) << 24 | rid; }
};

// A method or member row without its owner's name. `signature` is the whole signature blob.
struct MetadataMember {
  absl::string_view name;
  std::span<const std::byte> signature;
  uint16_t implementation = 0;  // of a MethodDef: MethodImplAttributes
};
// Rows of Field that belong to one type.
struct FieldRows {
  uint32_t first = 0, count = 0;
};

constexpr uint16_t kMethodImplNoOptimization = 0x40;
constexpr uint16_t kMethodImplAggressiveOptimization = 0x200;
constexpr uint16_t kMethodImplAsync = 0x2000;  // the runtime compiles it as async (runtime async)

class MetadataTables {
 public:
  // DataLoss: no metadata, or its tables do not lie inside `metadata`. Unimplemented: tables that nobody defines, and
  // unsorted ones of names with more than kMaxUnsortedRows rows.
  static absl::StatusOr<MetadataTables> Parse(std::span<const std::byte> metadata);

  uint32_t rows(MetadataTable table) const { return tables_[static_cast<size_t>(table)].rows; }

  // All nullopt: no such row, or it refers to something outside the heaps.
  std::optional<MetadataMember> Method(uint32_t rid) const;  // MethodDef
  std::optional<MetadataMember> MemberRef(uint32_t rid) const;
  std::optional<MetadataToken> MemberRefParent(uint32_t rid) const;
  std::optional<uint32_t> OwnerOfMethod(uint32_t rid) const;  // rid of the TypeDef
  // nullopt, too: fields that stand in another order than their types (a FieldPtr table), as Reflection.Emit has them.
  std::optional<FieldRows> FieldsOf(uint32_t type_def) const;
  std::optional<absl::string_view> FieldName(uint32_t rid) const;
  std::optional<std::span<const std::byte>> TypeSpec(uint32_t rid) const;
  std::optional<absl::string_view> AssemblyRefName(uint32_t rid) const;
  std::optional<absl::string_view> AssemblyName() const;  // of the Assembly row; nullopt in manifest metadata
  std::optional<std::array<uint8_t, 16>> Mvid() const;
  // How many generic parameters a TypeDef or MethodDef declares itself (a nested type repeats those of the outer one).
  // Counts no further than one above kMostGenericParameters.
  static constexpr uint32_t kMostGenericParameters = 256;
  uint32_t GenericParameterCount(MetadataToken owner) const;
  std::optional<absl::string_view> GenericParameterName(uint32_t rid) const;

  // Appends "Ns.Outer`1+Inner" of a TypeDef or TypeRef. False, with `text` unchanged: the row is damaged, or nested in
  // a circle or deeper than 32, or where many unsorted rows make each level expensive.
  bool AppendTypeName(MetadataToken type, std::string& text) const;
  // Tells `wants_more` the row and the full name of each TypeDef until it has enough. False: a row is damaged, or there
  // is much more of it all than in CoreLib, which has 4,000 types.
  bool ForEachTypeName(absl::FunctionRef<bool(uint32_t row, absl::string_view name)> wants_more) const;

  // For readers of tables that have no function of their own here. Columns count from 0, as the specifications list
  // them. Absent: no such row, or an index that leads out of its heap.
  std::optional<uint32_t> Cell(MetadataTable table, uint32_t rid, size_t column) const;
  std::optional<std::span<const std::byte>> Blob(std::optional<uint32_t> index) const;
  std::optional<std::array<uint8_t, 16>> Guid(std::optional<uint32_t> index) const;  // absent too: index 0
  // The first row whose `column` holds `value`; 0: none, or an unsorted table of more than kMaxUnsortedRows rows.
  uint32_t FindRow(MetadataTable table, size_t column, uint32_t value) const;
  // The promise of the tables' header: rows stand in the order of the column that the specification names.
  bool sorted(MetadataTable table) const { return (sorted_ >> static_cast<int>(table) & 1) != 0; }
  // "#Pdb", which only portable PDBs have; empty: no such stream.
  std::span<const std::byte> pdb_stream() const { return pdb_stream_; }
  // "#GUID", with the module's Mvid; empty: no such stream.
  std::span<const std::byte> guids() const { return guids_; }

  // TypeDefOrRefOrSpec of signatures and tables; nullopt for the unused tag.
  static std::optional<MetadataToken> DecodeTypeDefOrRef(uint32_t coded);

 private:
  static constexpr size_t kTableCount = 0x38;
  static constexpr size_t kMaxColumns = 9;
  struct Table {
    uint32_t rows = 0;
    uint32_t row_bytes = 0;
    uint64_t offset = 0;
    std::array<uint8_t, kMaxColumns> column_offset = {};
    std::array<uint8_t, kMaxColumns> column_bytes = {};
  };

  // Tables that Reflection.Emit leaves unsorted are searched row by row, which must stay cheap.
  static constexpr uint32_t kMaxUnsortedRows = 65536;

  using RowCounts = std::array<uint32_t, kTableCount>;
  absl::Status ParseTables();
  // The tables of `mask` by their numbers, 4 bytes each from `offset` on, which is moved behind them.
  static absl::Status ReadRowCounts(std::span<const std::byte> bytes, uint64_t mask, uint64_t& offset,
                                    RowCounts& counts);
  // `counts`: of all tables that can be referred to.
  absl::Status PlaceTables(uint8_t heap_sizes, uint64_t offset, const RowCounts& counts);
  std::optional<absl::string_view> String(std::optional<uint32_t> index) const;
  std::optional<uint32_t> EnclosingType(uint32_t rid) const;
  bool AppendTypeName(MetadataToken type, int depth, std::string& text) const;

  uint64_t sorted_ = 0;                // bit for each table
  std::span<const std::byte> stream_;  // #~ or #-
  std::span<const std::byte> strings_;
  std::span<const std::byte> blobs_;
  std::span<const std::byte> guids_;
  std::span<const std::byte> pdb_stream_;
  std::array<Table, kTableCount> tables_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PE_METADATA_TABLES_H_
