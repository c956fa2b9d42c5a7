// Metadata by itself, as it is copied from a target's memory: "#-" streams of Reflection.Emit included.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "formats/pe/metadata_tables.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using clrsampler::MetadataTable;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto require = [](bool condition) {
    if (!condition) __builtin_trap();
  };
  const auto tables = clrsampler::MetadataTables::Parse(bytes);
  if (!tables.ok()) return 0;
  tables->AssemblyName();
  tables->Mvid();
  // A bounded number of rows, so that one input stays fast.
  const auto some = [&](MetadataTable table) { return std::min<uint32_t>(tables->rows(table), 50) + 2; };
  for (uint32_t rid = 0; rid < some(MetadataTable::kTypeDef); ++rid) {
    std::string name = "kept";
    const bool named = tables->AppendTypeName({MetadataTable::kTypeDef, rid}, name);
    require(named ? name.size() > 4 : name == "kept");
    require(tables->GenericParameterCount({MetadataTable::kTypeDef, rid}) <=
            tables->rows(MetadataTable::kGenericParam));
  }
  for (uint32_t rid = 0; rid < some(MetadataTable::kMethodDef); ++rid) {
    const auto owner = tables->OwnerOfMethod(rid);
    require(!owner || (*owner != 0 && *owner <= tables->rows(MetadataTable::kTypeDef)));
    require(!owner || (rid != 0 && rid <= tables->rows(MetadataTable::kMethodDef)));
    tables->Method(rid);
    require(tables->GenericParameterCount({MetadataTable::kMethodDef, rid}) <=
            tables->rows(MetadataTable::kGenericParam));
  }
  for (uint32_t rid = 0; rid < some(MetadataTable::kGenericParam); ++rid) tables->GenericParameterName(rid);
  return 0;
}
