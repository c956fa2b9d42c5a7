#include "clr/memory/quick_code.h"

#include <cstdint>
#include <optional>
#include <string>

#include "clr/memory/il_map_reader.h"
#include "formats/pe/il_body.h"
#include "formats/pe/metadata_tables.h"
#include "formats/pe/pe_image.h"

namespace clrsampler {
namespace {

// The type whose constructor an attribute calls, by the tag of its row: a MethodDef or a MemberRef.
std::string AttributeName(const MetadataTables& tables, uint32_t constructor) {
  constexpr uint32_t kTagBits = 3, kTagMask = 7, kMethodDef = 2, kMemberRef = 3;
  const uint32_t rid = constructor >> kTagBits;
  std::optional<MetadataToken> type;
  if ((constructor & kTagMask) == kMemberRef) type = tables.MemberRefParent(rid);
  if ((constructor & kTagMask) == kMethodDef) {
    if (const std::optional<uint32_t> owner = tables.OwnerOfMethod(rid)) type = {MetadataTable::kTypeDef, *owner};
  }
  std::string name;
  const bool has_name = type && (type->table == MetadataTable::kTypeDef || type->table == MetadataTable::kTypeRef);
  if (has_name && !tables.AppendTypeName(*type, name)) name.clear();
  return name;
}

// Whether the method can be called by native code; true as well where its attributes can't be read.
bool IsCalledByNativeCode(const MetadataTables& tables, uint32_t rid) {
  constexpr uint32_t kMaxAttributes = 256, kTagBits = 5;  // the tag of a MethodDef is 0
  constexpr size_t kParent = 0, kConstructor = 1;
  if (tables.rows(MetadataTable::kCustomAttribute) == 0) return false;
  if (!tables.sorted(MetadataTable::kCustomAttribute)) return true;
  const uint32_t parent = rid << kTagBits;
  const uint32_t first = tables.FindRow(MetadataTable::kCustomAttribute, kParent, parent);
  if (first == 0) return false;
  for (uint32_t row = first; row < first + kMaxAttributes; ++row) {
    if (tables.Cell(MetadataTable::kCustomAttribute, row, kParent) != parent) return false;
    const std::optional<uint32_t> constructor = tables.Cell(MetadataTable::kCustomAttribute, row, kConstructor);
    if (!constructor ||
        AttributeName(tables, *constructor) == "System.Runtime.InteropServices.UnmanagedCallersOnlyAttribute") {
      return true;
    }
  }
  return true;
}

}  // namespace

bool IsQuickCode(MemoryReader& memory, DebugInfoFormat format, const RuntimeMethod& method, const MethodCode& code) {
  if (method.module == nullptr || method.module->image.empty() || !method.module->names.tables) return false;
  constexpr uint32_t kRidMask = 0xFFFFFF;
  constexpr size_t kRvaColumn = 0;
  const MetadataTables& tables = *method.module->names.tables;
  const uint32_t rid = method.token & kRidMask;
  const std::optional<uint32_t> rva = tables.Cell(MetadataTable::kMethodDef, rid, kRvaColumn);
  const absl::StatusOr<PeImage> image = PeImage::Parse(method.module->image);
  if (rva.value_or(0) == 0 || !image.ok()) return false;
  const absl::StatusOr<IlBodyFacts> body = ReadIlBody(image->BytesFrom(*rva, kMaxIlBodyBytes));
  if (!body.ok() || body->has_tail_prefix || IsCalledByNativeCode(tables, rid)) return false;
  return !body->branches_back || HasPatchpoint(memory, format, code).value_or(false);
}

}  // namespace clrsampler
