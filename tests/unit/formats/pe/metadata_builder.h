// Small metadata, written by the rules of ECMA-335 II.24: for tables that no compiler leaves in the shape a test needs.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_PE_METADATA_BUILDER_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_PE_METADATA_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/pe/metadata_tables.h"

namespace clrsampler {

inline void PutLittleEndian(std::string& out, int bytes, uint64_t value) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

// The header, and the streams behind it in their order.
inline std::string MetadataRoot(const std::vector<std::pair<std::string, std::string>>& streams) {
  std::string root;
  PutLittleEndian(root, 4, 0x424A5342);
  PutLittleEndian(root, 2, 1);
  PutLittleEndian(root, 2, 1);
  PutLittleEndian(root, 4, 0);
  PutLittleEndian(root, 4, 12);
  root += std::string("v4.0.30319\0\0", 12);
  PutLittleEndian(root, 2, 0);
  PutLittleEndian(root, 2, streams.size());
  size_t offset = root.size();
  for (const auto& [name, bytes] : streams) offset += 8 + (name.size() / 4 + 1) * 4;
  for (const auto& [name, bytes] : streams) {
    PutLittleEndian(root, 4, offset);
    PutLittleEndian(root, 4, bytes.size());
    std::string padded = name;
    padded.resize((name.size() / 4 + 1) * 4);
    root += padded;
    offset += bytes.size();
  }
  for (const auto& [name, bytes] : streams) root += bytes;
  return root;
}

// Rows get the numbers 1, 2, ... in the order of the calls. All indexes are 2 bytes wide: few rows, small heaps.
class MetadataBuilder {
 public:
  explicit MetadataBuilder(const std::string& assembly = "fake") {
    Append(MetadataTable::kModule, {{2, 0}, {2, String(assembly + ".dll")}, {2, 0}, {2, 0}, {2, 0}});
    Append(MetadataTable::kAssembly, {{4, 0}, {4, 0}, {4, 0}, {4, 0}, {2, 0}, {2, String(assembly)}, {2, 0}});
  }

  // Owns the methods and fields that are added behind it, up to the next type.
  uint32_t Type(const std::string& name_space, const std::string& name) {
    return Append(MetadataTable::kTypeDef, {{4, 0},
                                            {2, String(name)},
                                            {2, String(name_space)},
                                            {2, 0},
                                            {2, static_cast<uint32_t>(rows(MetadataTable::kField)) + 1},
                                            {2, static_cast<uint32_t>(rows(MetadataTable::kMethodDef)) + 1}});
  }
  // With a list of methods that begins at any row (of MethodPtr where there is one).
  uint32_t TypeWithMethodsFrom(const std::string& name_space, const std::string& name, uint32_t first) {
    return Append(MetadataTable::kTypeDef,
                  {{4, 0}, {2, String(name)}, {2, String(name_space)}, {2, 0}, {2, 1}, {2, first}});
  }
  // By default `void ()`.
  // `body`: the RVA of its IL; 0: it has none. `implementation`: MethodImplAttributes.
  uint32_t Method(const std::string& name, std::vector<uint8_t> signature = {0x00, 0x00, 0x01}, uint32_t body = 0,
                  uint16_t implementation = 0) {
    return Append(MetadataTable::kMethodDef,
                  {{4, body}, {2, implementation}, {2, 0}, {2, String(name)}, {2, Blob(std::move(signature))}, {2, 1}});
  }
  uint32_t Field(const std::string& name) { return Append(MetadataTable::kField, {{2, 0}, {2, String(name)}, {2, 0}}); }
  uint32_t MethodPtr(uint32_t method) { return Append(MetadataTable::kMethodPtr, {{2, method}}); }
  uint32_t Nested(uint32_t type, uint32_t outer) {
    return Append(MetadataTable::kNestedClass, {{2, type}, {2, outer}});
  }
  uint32_t GenericParam(MetadataToken owner, uint32_t number, const std::string& name) {
    const uint32_t coded = owner.rid << 1 | (owner.table == MetadataTable::kMethodDef ? 1 : 0);
    return Append(MetadataTable::kGenericParam, {{2, number}, {2, 0}, {2, coded}, {2, String(name)}});
  }
  // As if sorted: what compilers promise of "#~".
  MetadataBuilder& Sorted(MetadataTable table) {
    sorted_ |= uint64_t{1} << static_cast<int>(table);
    return *this;
  }
  // The extra word behind the row counts that the runtime's own writer leaves.
  MetadataBuilder& ExtraData() {
    extra_data_ = true;
    return *this;
  }
  size_t rows(MetadataTable table) const {
    const auto found = tables_.find(static_cast<int>(table));
    return found == tables_.end() ? 0 : found->second.rows;
  }

  // The parts of a large module as Roslyn writes them: its GUIDs are more than `padding` away from both ends.
  std::string BuildLarge(const std::string& guids, size_t padding) const {
    const std::string room(padding, '\0');
    return MetadataRoot({{"#~", Tables() + room}, {"#Strings", strings_}, {"#GUID", guids}, {"#Blob", blobs_ + room}});
  }
  std::string Build(const std::string& stream_name = "#~") const {
    return MetadataRoot({{stream_name, Tables()}, {"#Strings", strings_}, {"#Blob", blobs_}});
  }

 private:
  std::string Tables() const {
    std::string stream;
    PutLittleEndian(stream, 4, 0);
    stream += '\2';
    stream += '\0';
    stream += extra_data_ ? '\x40' : '\0';
    stream += '\1';
    uint64_t valid = 0;
    for (const auto& [table, content] : tables_) valid |= uint64_t{1} << table;
    PutLittleEndian(stream, 8, valid);
    PutLittleEndian(stream, 8, sorted_);
    for (const auto& [table, content] : tables_) PutLittleEndian(stream, 4, content.rows);
    if (extra_data_) PutLittleEndian(stream, 4, 0x5A5A5A5A);
    for (const auto& [table, content] : tables_) stream += content.bytes;
    return stream;
  }

  struct Cell {
    int bytes;
    uint32_t value;
  };
  struct Table {
    uint32_t rows = 0;
    std::string bytes;
  };

  uint32_t Append(MetadataTable table, std::vector<Cell> cells) {
    Table& content = tables_[static_cast<int>(table)];
    for (const Cell& cell : cells) PutLittleEndian(content.bytes, cell.bytes, cell.value);
    return ++content.rows;
  }
  uint32_t String(const std::string& text) {
    if (text.empty()) return 0;
    const uint32_t index = static_cast<uint32_t>(strings_.size());
    strings_ += text + '\0';
    return index;
  }
  uint32_t Blob(std::vector<uint8_t> bytes) {
    const uint32_t index = static_cast<uint32_t>(blobs_.size());
    blobs_ += static_cast<char>(bytes.size());
    blobs_.append(bytes.begin(), bytes.end());
    return index;
  }

  std::map<int, Table> tables_;
  std::string strings_ = std::string(1, '\0');
  std::string blobs_ = std::string(1, '\0');
  uint64_t sorted_ = 0;
  bool extra_data_ = false;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_PE_METADATA_BUILDER_H_
