#include "formats/pe/metadata_tables.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/pe/blob_cursor.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint32_t kMetadataMagic = 0x424A5342;  // "BSJB"
constexpr uint32_t kMaxStreams = 16;             // six are defined
constexpr int kMaxNesting = 32;
constexpr uint64_t kMostNestingSteps = 1 << 18;  // rows that are looked at for one name
// The most of an assembly whose types are looked for by their names.
constexpr uint32_t kMostNamedTypes = 1 << 16;
constexpr uint64_t kMostUnsortedSteps = 1 << 20;
constexpr size_t kMostNamesBytes = 8 << 20;
// The runtime takes names of up to 1023 bytes (MAX_CLASSNAME_LENGTH, src/coreclr/inc/corhdr.h); generated ones can be
// longer.
constexpr size_t kMaxNameBytes = 4096;

// The kind of data that one column holds, which decides how wide it is. Values below kTableCount: a row number of that
// table.
enum Column : uint8_t {
  kFixed2 = 0x40,
  kFixed4,
  kString,
  kGuid,
  kBlob,
  kTypeDefOrRef = 0x80,  // from here: coded indexes, II.24.2.6
  kHasConstant,
  kHasCustomAttribute,
  kHasFieldMarshal,
  kHasDeclSecurity,
  kMemberRefParent,
  kHasSemantics,
  kMethodDefOrRef,
  kMemberForwarded,
  kImplementation,
  kCustomAttributeType,
  kResolutionScope,
  kTypeOrMethodDef,
  kHasCustomDebugInformation,
  kNoColumn = 0xFF,
};

struct CodedIndex {
  uint8_t tag_bits;
  std::initializer_list<uint8_t> tables;
};

const CodedIndex& CodedIndexOf(uint8_t column) {
  static const CodedIndex kCoded[] = {
      {2, {0x02, 0x01, 0x1B}},
      {2, {0x04, 0x08, 0x17}},
      {5, {0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0A, 0x00, 0x0E, 0x17, 0x14,
           0x11, 0x1A, 0x1B, 0x20, 0x23, 0x26, 0x27, 0x28, 0x2A, 0x2C, 0x2B}},
      {1, {0x04, 0x08}},
      {2, {0x02, 0x06, 0x20}},
      {3, {0x02, 0x01, 0x1A, 0x06, 0x1B}},
      {1, {0x14, 0x17}},
      {1, {0x06, 0x0A}},
      {1, {0x04, 0x06}},
      {2, {0x26, 0x23, 0x27}},
      {3, {0x06, 0x0A}},
      {2, {0x00, 0x1A, 0x23, 0x01}},
      {1, {0x02, 0x06}},
      {5, {0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0A, 0x00, 0x0E, 0x17, 0x14, 0x11, 0x1A, 0x1B,
           0x20, 0x23, 0x26, 0x27, 0x28, 0x2A, 0x2C, 0x2B, 0x30, 0x32, 0x33, 0x34, 0x35}},
  };
  return kCoded[column - kTypeDefOrRef];
}

// II.22, and from 0x30 on portable PDBs, in table order. 0x03, 0x05, 0x07, 0x13 and 0x16 are the pointer tables of
// "#-"; 0x1E and 0x1F edit-and-continue.
constexpr uint8_t kSchema[][9] = {
    /* 00 Module */ {kFixed2, kString, kGuid, kGuid, kGuid, kNoColumn},
    /* 01 TypeRef */ {kResolutionScope, kString, kString, kNoColumn},
    /* 02 TypeDef */ {kFixed4, kString, kString, kTypeDefOrRef, 0x04, 0x06, kNoColumn},
    /* 03 */ {0x04, kNoColumn},
    /* 04 Field */ {kFixed2, kString, kBlob, kNoColumn},
    /* 05 */ {0x06, kNoColumn},
    /* 06 MethodDef */ {kFixed4, kFixed2, kFixed2, kString, kBlob, 0x08, kNoColumn},
    /* 07 */ {0x08, kNoColumn},
    /* 08 Param */ {kFixed2, kFixed2, kString, kNoColumn},
    /* 09 InterfaceImpl */ {0x02, kTypeDefOrRef, kNoColumn},
    /* 0A MemberRef */ {kMemberRefParent, kString, kBlob, kNoColumn},
    /* 0B Constant */ {kFixed2, kHasConstant, kBlob, kNoColumn},
    /* 0C CustomAttribute */ {kHasCustomAttribute, kCustomAttributeType, kBlob, kNoColumn},
    /* 0D FieldMarshal */ {kHasFieldMarshal, kBlob, kNoColumn},
    /* 0E DeclSecurity */ {kFixed2, kHasDeclSecurity, kBlob, kNoColumn},
    /* 0F ClassLayout */ {kFixed2, kFixed4, 0x02, kNoColumn},
    /* 10 FieldLayout */ {kFixed4, 0x04, kNoColumn},
    /* 11 StandAloneSig */ {kBlob, kNoColumn},
    /* 12 EventMap */ {0x02, 0x14, kNoColumn},
    /* 13 */ {0x14, kNoColumn},
    /* 14 Event */ {kFixed2, kString, kTypeDefOrRef, kNoColumn},
    /* 15 PropertyMap */ {0x02, 0x17, kNoColumn},
    /* 16 */ {0x17, kNoColumn},
    /* 17 Property */ {kFixed2, kString, kBlob, kNoColumn},
    /* 18 MethodSemantics */ {kFixed2, 0x06, kHasSemantics, kNoColumn},
    /* 19 MethodImpl */ {0x02, kMethodDefOrRef, kMethodDefOrRef, kNoColumn},
    /* 1A ModuleRef */ {kString, kNoColumn},
    /* 1B TypeSpec */ {kBlob, kNoColumn},
    /* 1C ImplMap */ {kFixed2, kMemberForwarded, kString, 0x1A, kNoColumn},
    /* 1D FieldRva */ {kFixed4, 0x04, kNoColumn},
    /* 1E */ {kFixed4, kFixed4, kNoColumn},
    /* 1F */ {kFixed4, kNoColumn},
    /* 20 Assembly */ {kFixed4, kFixed4, kFixed4, kFixed4, kBlob, kString, kString, kNoColumn},
    /* 21 AssemblyProcessor */ {kFixed4, kNoColumn},
    /* 22 AssemblyOS */ {kFixed4, kFixed4, kFixed4, kNoColumn},
    /* 23 AssemblyRef */ {kFixed4, kFixed4, kFixed4, kBlob, kString, kString, kBlob, kNoColumn},
    /* 24 */ {kFixed4, 0x23, kNoColumn},
    /* 25 */ {kFixed4, kFixed4, kFixed4, 0x23, kNoColumn},
    /* 26 File */ {kFixed4, kString, kBlob, kNoColumn},
    /* 27 ExportedType */ {kFixed4, kFixed4, kString, kString, kImplementation, kNoColumn},
    /* 28 ManifestResource */ {kFixed4, kFixed4, kString, kImplementation, kNoColumn},
    /* 29 NestedClass */ {0x02, 0x02, kNoColumn},
    /* 2A GenericParam */ {kFixed2, kFixed2, kTypeOrMethodDef, kString, kNoColumn},
    /* 2B MethodSpec */ {kMethodDefOrRef, kBlob, kNoColumn},
    /* 2C GenericParamConstraint */ {0x2A, kTypeDefOrRef, kNoColumn},
    /* 2D, not defined */ {kNoColumn},
    /* 2E, not defined */ {kNoColumn},
    /* 2F, not defined */ {kNoColumn},
    /* 30 Document */ {kBlob, kGuid, kBlob, kGuid, kNoColumn},
    /* 31 MethodDebugInformation */ {0x30, kBlob, kNoColumn},
    /* 32 LocalScope */ {0x06, 0x35, 0x33, 0x34, kFixed4, kFixed4, kNoColumn},
    /* 33 LocalVariable */ {kFixed2, kFixed2, kString, kNoColumn},
    /* 34 LocalConstant */ {kString, kBlob, kNoColumn},
    /* 35 ImportScope */ {0x35, kBlob, kNoColumn},
    /* 36 StateMachineMethod */ {0x06, 0x06, kNoColumn},
    /* 37 CustomDebugInformation */ {kHasCustomDebugInformation, kGuid, kBlob, kNoColumn},
};
static_assert(std::size(kSchema) == 0x38);
constexpr uint64_t kTypeSystemTables = (uint64_t{1} << 0x2D) - 1;
constexpr uint64_t kDebugTables = uint64_t{0xFF} << 0x30;

}  // namespace

absl::StatusOr<MetadataTables> MetadataTables::Parse(std::span<const std::byte> metadata) {
  if (LoadAt<uint32_t>(metadata, 0) != kMetadataMagic) return absl::DataLossError("no metadata header");
  const uint64_t version_bytes = LoadAt<uint32_t>(metadata, 12).value_or(0);
  const uint64_t header = 16 + version_bytes;
  const std::optional<uint16_t> stream_count = LoadAt<uint16_t>(metadata, header + 2);
  if (!stream_count || *stream_count > kMaxStreams) return absl::DataLossError("the metadata header is damaged");

  MetadataTables tables;
  uint64_t offset = header + 4;
  for (int i = 0; i < *stream_count; ++i) {
    const std::optional<uint32_t> start = LoadAt<uint32_t>(metadata, offset);
    const std::optional<uint32_t> bytes = LoadAt<uint32_t>(metadata, offset + 4);
    const std::optional<absl::string_view> name = TextAt(metadata, offset + 8, 32);
    if (!start || !bytes || !name) return absl::DataLossError("the list of metadata streams is cut off");
    const std::optional<std::span<const std::byte>> content = SliceAt(metadata, *start, *bytes);
    if (!content) return absl::DataLossError(absl::StrCat("metadata stream ", *name, " lies outside the metadata"));
    if (*name == "#~" || *name == "#-") tables.stream_ = *content;
    if (*name == "#Pdb") tables.pdb_stream_ = *content;
    if (*name == "#Strings") tables.strings_ = *content;
    if (*name == "#Blob") tables.blobs_ = *content;
    if (*name == "#GUID") tables.guids_ = *content;
    offset += 8 + (name->size() / 4 + 1) * 4;
  }
  if (tables.stream_.empty()) return absl::DataLossError("metadata without tables");
  RETURN_IF_ERROR(tables.ParseTables());
  return tables;
}

absl::Status MetadataTables::ParseTables() {
  const std::optional<uint8_t> heap_sizes = LoadAt<uint8_t>(stream_, 6);
  const std::optional<uint64_t> valid = LoadAt<uint64_t>(stream_, 8);
  const std::optional<uint64_t> sorted = LoadAt<uint64_t>(stream_, 16);
  if (!heap_sizes || !valid || !sorted) return absl::DataLossError("the header of the metadata tables is cut off");
  if ((*valid & ~(kTypeSystemTables | kDebugTables)) != 0) {
    return absl::UnimplementedError("metadata with tables that are not defined");
  }
  RowCounts counts = {};
  // A PDB by itself refers to rows of tables that its assembly has.
  if (!pdb_stream_.empty()) {
    const std::optional<uint64_t> referenced = LoadAt<uint64_t>(pdb_stream_, 24);
    if (!referenced || (*referenced & ~kTypeSystemTables) != 0)
      return absl::DataLossError("the #Pdb stream is damaged");
    uint64_t offset = 32;
    RETURN_IF_ERROR(ReadRowCounts(pdb_stream_, *referenced, offset, counts));
  }
  uint64_t offset = 24;
  RETURN_IF_ERROR(ReadRowCounts(stream_, *valid, offset, counts));
  for (size_t i = 0; i < kTableCount; ++i) {
    if ((*valid >> i & 1) != 0) tables_[i].rows = counts[i];
  }
  if ((*heap_sizes & 0x40) != 0) offset += 4;
  RETURN_IF_ERROR(PlaceTables(*heap_sizes, offset, counts));

  sorted_ = *sorted;
  for (const MetadataTable table :
       {MetadataTable::kNestedClass, MetadataTable::kGenericParam, MetadataTable::kMethodPtr}) {
    const bool is_sorted = table != MetadataTable::kMethodPtr && this->sorted(table);
    if (!is_sorted && rows(table) > kMaxUnsortedRows) {
      return absl::UnimplementedError(absl::StrCat("metadata with ", rows(table), " unsorted rows in a table"));
    }
  }
  return absl::OkStatus();
}

absl::Status MetadataTables::ReadRowCounts(std::span<const std::byte> bytes, uint64_t mask, uint64_t& offset,
                                           RowCounts& counts) {
  for (size_t i = 0; i < kTableCount; ++i) {
    if ((mask >> i & 1) == 0) continue;
    const std::optional<uint32_t> rows = LoadAt<uint32_t>(bytes, offset);
    if (!rows || *rows > 0xFFFFFF) return absl::DataLossError("a metadata table has an impossible number of rows");
    counts[i] = *rows;
    offset += 4;
  }
  return absl::OkStatus();
}

absl::Status MetadataTables::PlaceTables(uint8_t heap_sizes, uint64_t offset, const RowCounts& counts) {
  auto column_bytes = [&](uint8_t column) -> uint8_t {
    if (column < kTableCount) return counts[column] > 0xFFFF ? 4 : 2;
    if (column == kFixed2) return 2;
    if (column == kFixed4) return 4;
    if (column == kString) return (heap_sizes & 1) != 0 ? 4 : 2;
    if (column == kGuid) return (heap_sizes & 2) != 0 ? 4 : 2;
    if (column == kBlob) return (heap_sizes & 4) != 0 ? 4 : 2;
    const CodedIndex& coded = CodedIndexOf(column);
    uint32_t most = 0;
    for (uint8_t table : coded.tables) most = std::max(most, counts[table]);
    return most >> (16 - coded.tag_bits) != 0 ? 4 : 2;
  };
  for (size_t i = 0; i < kTableCount; ++i) {
    Table& table = tables_[i];
    if (table.rows == 0) continue;
    table.offset = offset;
    for (size_t c = 0; c < kMaxColumns && kSchema[i][c] != kNoColumn; ++c) {
      table.column_offset[c] = static_cast<uint8_t>(table.row_bytes);
      table.column_bytes[c] = column_bytes(kSchema[i][c]);
      table.row_bytes += table.column_bytes[c];
    }
    offset += uint64_t{table.rows} * table.row_bytes;
    if (offset > stream_.size()) return absl::DataLossError(absl::StrCat("metadata table ", i, " is cut off"));
  }
  return absl::OkStatus();
}

std::optional<uint32_t> MetadataTables::Cell(MetadataTable which, uint32_t rid, size_t column) const {
  const Table& table = tables_[static_cast<size_t>(which)];
  if (rid == 0 || rid > table.rows) return std::nullopt;
  const uint64_t offset = table.offset + uint64_t{rid - 1} * table.row_bytes + table.column_offset[column];
  if (table.column_bytes[column] == 4) return LoadAt<uint32_t>(stream_, offset);
  return LoadAt<uint16_t>(stream_, offset);
}

std::optional<absl::string_view> MetadataTables::String(std::optional<uint32_t> index) const {
  if (!index) return std::nullopt;
  return TextAt(strings_, *index, kMaxNameBytes);
}

std::optional<std::span<const std::byte>> MetadataTables::Blob(std::optional<uint32_t> index) const {
  if (!index) return std::nullopt;
  BlobCursor cursor(blobs_, *index);
  const uint32_t bytes = cursor.Number();  // II.24.2.4
  if (cursor.failed()) return std::nullopt;
  return SliceAt(blobs_, cursor.offset(), bytes);
}

std::optional<std::array<uint8_t, 16>> MetadataTables::Guid(std::optional<uint32_t> index) const {
  if (!index || *index == 0) return std::nullopt;
  const std::optional<std::span<const std::byte>> raw = SliceAt(guids_, uint64_t{*index - 1} * 16, 16);
  if (!raw) return std::nullopt;
  std::array<uint8_t, 16> guid;
  std::memcpy(guid.data(), raw->data(), guid.size());
  return guid;
}

std::optional<MetadataMember> MetadataTables::Method(uint32_t rid) const {
  const std::optional<absl::string_view> name = String(Cell(MetadataTable::kMethodDef, rid, 3));
  const std::optional<std::span<const std::byte>> signature = Blob(Cell(MetadataTable::kMethodDef, rid, 4));
  if (!name || !signature) return std::nullopt;
  const uint32_t implementation = Cell(MetadataTable::kMethodDef, rid, 1).value_or(0);
  return MetadataMember{*name, *signature, static_cast<uint16_t>(implementation)};
}

std::optional<FieldRows> MetadataTables::FieldsOf(uint32_t type_def) const {
  if (rows(MetadataTable::kFieldPtr) != 0) return std::nullopt;
  const std::optional<uint32_t> first = Cell(MetadataTable::kTypeDef, type_def, 4);
  const uint32_t all = rows(MetadataTable::kField), behind = all + 1;
  const uint32_t end = Cell(MetadataTable::kTypeDef, type_def + 1, 4).value_or(behind);
  if (!first || *first == 0 || end < *first || end > behind) return std::nullopt;
  return FieldRows{*first, end - *first};
}

std::optional<absl::string_view> MetadataTables::FieldName(uint32_t rid) const {
  return String(Cell(MetadataTable::kField, rid, 1));
}

std::optional<MetadataMember> MetadataTables::MemberRef(uint32_t rid) const {
  const std::optional<absl::string_view> name = String(Cell(MetadataTable::kMemberRef, rid, 1));
  const std::optional<std::span<const std::byte>> signature = Blob(Cell(MetadataTable::kMemberRef, rid, 2));
  if (!name || !signature) return std::nullopt;
  return MetadataMember{.name = *name, .signature = *signature};
}

std::optional<MetadataToken> MetadataTables::MemberRefParent(uint32_t rid) const {
  const std::optional<uint32_t> coded = Cell(MetadataTable::kMemberRef, rid, 0);
  if (!coded) return std::nullopt;
  constexpr MetadataTable kParents[] = {MetadataTable::kTypeDef, MetadataTable::kTypeRef, MetadataTable::kModuleRef,
                                        MetadataTable::kMethodDef, MetadataTable::kTypeSpec};
  if ((*coded & 7) >= std::size(kParents)) return std::nullopt;
  return MetadataToken{kParents[*coded & 7], *coded >> 3};
}

std::optional<uint32_t> MetadataTables::OwnerOfMethod(uint32_t rid) const {
  if (rid == 0 || rid > rows(MetadataTable::kMethodDef)) return std::nullopt;
  // With a MethodPtr table the lists of the types count its rows instead.
  if (rows(MetadataTable::kMethodPtr) != 0) {
    rid = FindRow(MetadataTable::kMethodPtr, 0, rid);
    if (rid == 0) return std::nullopt;
  }
  // The last TypeDef whose list starts at or before the method: types without methods start where the next one does.
  uint32_t low = 0, high = rows(MetadataTable::kTypeDef);
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    if (Cell(MetadataTable::kTypeDef, middle, 5).value_or(UINT32_MAX) <= rid) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  if (low == 0) return std::nullopt;
  return low;
}

std::optional<std::span<const std::byte>> MetadataTables::TypeSpec(uint32_t rid) const {
  return Blob(Cell(MetadataTable::kTypeSpec, rid, 0));
}

std::optional<absl::string_view> MetadataTables::AssemblyRefName(uint32_t rid) const {
  return String(Cell(MetadataTable::kAssemblyRef, rid, 4));
}

std::optional<absl::string_view> MetadataTables::AssemblyName() const {
  return String(Cell(MetadataTable::kAssembly, 1, 5));
}

std::optional<std::array<uint8_t, 16>> MetadataTables::Mvid() const { return Guid(Cell(MetadataTable::kModule, 1, 2)); }

uint32_t MetadataTables::FindRow(MetadataTable table, size_t column, uint32_t value) const {
  const uint32_t count = rows(table);
  if (table == MetadataTable::kMethodPtr || !sorted(table)) {
    if (count > kMaxUnsortedRows) return 0;
    for (uint32_t rid = 1; rid <= count; ++rid) {
      if (Cell(table, rid, column) == value) return rid;
    }
    return 0;
  }
  uint32_t low = 1, high = count + 1;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (Cell(table, middle, column).value_or(UINT32_MAX) < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return Cell(table, low, column) == value ? low : 0;
}

std::optional<uint32_t> MetadataTables::EnclosingType(uint32_t rid) const {
  const uint32_t row = FindRow(MetadataTable::kNestedClass, 0, rid);
  return row == 0 ? std::nullopt : Cell(MetadataTable::kNestedClass, row, 1);
}

uint32_t MetadataTables::GenericParameterCount(MetadataToken owner) const {
  const uint32_t coded = owner.rid << 1 | (owner.table == MetadataTable::kMethodDef ? 1 : 0);
  uint32_t row = FindRow(MetadataTable::kGenericParam, 2, coded);
  uint32_t count = 0;
  if (row == 0) return 0;
  for (; row <= rows(MetadataTable::kGenericParam) && count <= kMostGenericParameters; ++row) {
    if (Cell(MetadataTable::kGenericParam, row, 2) == coded) {
      ++count;
    } else if (sorted(MetadataTable::kGenericParam)) {
      break;
    }
  }
  return count;
}

std::optional<absl::string_view> MetadataTables::GenericParameterName(uint32_t rid) const {
  return String(Cell(MetadataTable::kGenericParam, rid, 3));
}

bool MetadataTables::AppendTypeName(MetadataToken type, std::string& text) const {
  const size_t before = text.size();
  if (AppendTypeName(type, 0, text)) return true;
  text.resize(before);
  return false;
}

bool MetadataTables::ForEachTypeName(absl::FunctionRef<bool(uint32_t row, absl::string_view name)> wants_more) const {
  const uint64_t types = rows(MetadataTable::kTypeDef), nested = rows(MetadataTable::kNestedClass);
  if (types > kMostNamedTypes) return false;
  if (!sorted(MetadataTable::kNestedClass) && types * nested > kMostUnsortedSteps) return false;
  std::string name;
  size_t bytes = 0;
  for (uint32_t row = 1; row <= types; ++row) {
    name.clear();
    if (!AppendTypeName({MetadataTable::kTypeDef, row}, name)) return false;
    bytes += name.size();
    if (bytes > kMostNamesBytes) return false;
    if (!wants_more(row, name)) return true;
  }
  return true;
}

bool MetadataTables::AppendTypeName(MetadataToken type, int depth, std::string& text) const {
  if (depth > kMaxNesting) return false;  // also ends circles
  const uint64_t step = sorted(MetadataTable::kNestedClass) ? 0 : rows(MetadataTable::kNestedClass);
  if (static_cast<uint64_t>(depth) * step > kMostNestingSteps) return false;
  std::optional<uint32_t> outer;
  if (type.table == MetadataTable::kTypeDef) {
    outer = EnclosingType(type.rid);
  } else if (type.table == MetadataTable::kTypeRef) {
    const std::optional<uint32_t> scope = Cell(MetadataTable::kTypeRef, type.rid, 0);
    if (scope && (*scope & 3) == 3 && *scope >> 2 != 0) outer = *scope >> 2;
  } else {
    return false;
  }
  const std::optional<absl::string_view> name = String(Cell(type.table, type.rid, 1));
  if (!name || name->empty()) return false;
  if (outer) {
    if (!AppendTypeName({type.table, *outer}, depth + 1, text)) return false;
    absl::StrAppend(&text, "+", *name);
    return true;
  }
  const std::optional<absl::string_view> name_space = String(Cell(type.table, type.rid, 2));
  if (!name_space) return false;
  if (!name_space->empty()) absl::StrAppend(&text, *name_space, ".");
  absl::StrAppend(&text, *name);
  return true;
}

std::optional<MetadataToken> MetadataTables::DecodeTypeDefOrRef(uint32_t coded) {
  constexpr MetadataTable kTables[] = {MetadataTable::kTypeDef, MetadataTable::kTypeRef, MetadataTable::kTypeSpec};
  if ((coded & 3) >= std::size(kTables)) return std::nullopt;
  return MetadataToken{kTables[coded & 3], coded >> 2};
}

}  // namespace clrsampler
