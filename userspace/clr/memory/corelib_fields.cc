#include "clr/memory/corelib_fields.h"

#include <array>

namespace clrsampler {
namespace {

constexpr uint32_t kFieldDescBytes = 16;
constexpr uint32_t kMaxFields = 1024;
constexpr size_t kMaxFieldTypes = 1024;  // a made-up object has a made-up type
// Bits of a FieldDesc's first number: the row of its field, and the kind of the field.
constexpr uint32_t kRowMask = 0xFF'FFFF, kStatic = 1 << 24, kThreadStatic = 1 << 25, kRva = 1 << 26;
constexpr uint32_t kOffsetMask = (1 << 27) - 1;
constexpr uint32_t kFirstSpecialOffset = kOffsetMask - 16;  // not placed yet, or by other means
// LookupMap: the next one, the table, its rows.
constexpr uint32_t kMapTable = 8, kMapRows = 16;
constexpr uint64_t kMapFlags = 7;
// Before the auxiliary data of a class with static fields: DynamicStaticsInfo, which ends with the MethodTable.
constexpr uint32_t kStaticsBefore = 24, kStaticsOwnerBefore = 8;
constexpr uint64_t kStaticsNotReady = 1;

}  // namespace

std::shared_ptr<const RuntimeModule> CoreLibFields::CoreLib(MemoryProbe& probe) {
  if (runtime_.variables().object_type == 0) return nullptr;
  const uint64_t object = probe.Pointer(runtime_.variables().object_type);
  const uint64_t module = object == 0 ? 0 : probe.Pointer(object + runtime_.layout().method_table.module);
  if (module == 0 || !probe.ok()) return nullptr;
  std::shared_ptr<const RuntimeModule> core_lib = runtime_.modules().At(probe, module, false);
  return core_lib != nullptr && core_lib->names.tables ? core_lib : nullptr;
}

// 0: there is none.
uint32_t CoreLibFields::TypeDefNamed(const RuntimeModule& core_lib, absl::string_view name) {
  if (const auto known = type_defs_.find(name); known != type_defs_.end()) return known->second;
  uint32_t found = 0;
  core_lib.names.tables->ForEachTypeName([&](uint32_t rid, absl::string_view text) {
    if (text == name) found = rid;
    return found == 0;
  });
  type_defs_.emplace(std::string(name), found);
  return found;
}

uint64_t CoreLibFields::Type(MemoryProbe& probe, absl::string_view name) {
  main_loop_.Check();
  const std::shared_ptr<const RuntimeModule> core_lib = CoreLib(probe);
  if (core_lib == nullptr) return 0;
  const uint32_t rid = TypeDefNamed(*core_lib, name);
  const uint64_t map = core_lib->address + runtime_.layout().fields.type_map;
  if (rid == 0 || rid >= probe.Value<uint32_t>(map + kMapRows)) return 0;
  const uint64_t type = probe.Pointer(probe.Pointer(map + kMapTable) + 8 * uint64_t{rid}) & ~kMapFlags;
  return probe.ok() && type != 0 && TypeDefOf(probe, type) == rid ? type : 0;
}

bool CoreLibFields::IsOf(MemoryProbe& probe, uint64_t method_table, absl::string_view name) {
  main_loop_.Check();
  const std::shared_ptr<const RuntimeModule> core_lib = CoreLib(probe);
  if (core_lib == nullptr || method_table == 0) return false;
  const uint32_t rid = TypeDefNamed(*core_lib, name);
  return rid != 0 && TypeDefOf(probe, method_table) == rid &&
         probe.Pointer(method_table + runtime_.layout().method_table.module) == core_lib->address && probe.ok();
}

uint32_t CoreLibFields::TypeDefOf(MemoryProbe& probe, uint64_t method_table) const {
  const auto& at = runtime_.layout().method_table;
  if (at.rid_in_flags2) return at.TypeDefRow(probe.Value<uint32_t>(method_table + at.flags2));
  return at.TypeDefRow(uint32_t{probe.Value<uint16_t>(method_table + at.flags2 + 2)} << 16);
}

// An instantiation shares the class of the canonical one, whose address has its lowest bit set.
std::optional<CoreLibFields::Field> CoreLibFields::Find(MemoryProbe& probe, uint64_t method_table,
                                                        absl::string_view field) {
  if (fields_.size() >= kMaxFieldTypes) fields_.clear();
  auto& known = fields_[method_table];
  if (const auto found = known.find(field); found != known.end()) return found->second;
  const std::shared_ptr<const RuntimeModule> core_lib = CoreLib(probe);
  if (core_lib == nullptr) return std::nullopt;
  const MetadataTables& tables = *core_lib->names.tables;
  const std::optional<FieldRows> rows = tables.FieldsOf(TypeDefOf(probe, method_table));
  if (!rows || rows->count > kMaxFields) return std::nullopt;
  uint32_t row = 0;
  for (uint32_t i = 0; i < rows->count && row == 0; ++i) {
    if (tables.FieldName(rows->first + i) == field) row = rows->first + i;
  }
  if (row == 0) return std::nullopt;
  const RuntimeLayout::Fields& at = runtime_.layout().fields;
  uint64_t canonical = method_table, owner = probe.Pointer(method_table + at.class_or_canonical);
  if ((owner & 1) != 0) {
    canonical = owner & ~uint64_t{1};
    owner = probe.Pointer(canonical + at.class_or_canonical);
  }
  const uint64_t descriptors = probe.Pointer(owner + at.descriptors);
  for (uint32_t i = 0; i < rows->count && probe.ok(); ++i) {
    const auto desc = probe.Block<kFieldDescBytes>(descriptors + uint64_t{kFieldDescBytes} * i);
    if (!probe.ok() || FieldOf<uint64_t>(desc, 0) != canonical) break;
    const uint32_t first = FieldOf<uint32_t>(desc, 8), offset = FieldOf<uint32_t>(desc, 12) & kOffsetMask;
    if ((first & kRowMask) != row) continue;
    if ((first & (kThreadStatic | kRva)) != 0 || offset >= kFirstSpecialOffset) return std::nullopt;
    const Field found{(first & kStatic) != 0, offset};
    known.emplace(std::string(field), found);
    return found;
  }
  return std::nullopt;
}

std::optional<uint32_t> CoreLibFields::Offset(MemoryProbe& probe, uint64_t method_table, absl::string_view field) {
  main_loop_.Check();
  const std::optional<Field> found = method_table == 0 ? std::nullopt : Find(probe, method_table, field);
  if (!found || found->is_static || !probe.ok()) return std::nullopt;
  return found->offset;
}

uint64_t CoreLibFields::StaticObjects(MemoryProbe& probe, uint64_t method_table) const {
  const RuntimeLayout::Fields& at = runtime_.layout().fields;
  if (at.local_module) {
    const uint64_t module = probe.Pointer(method_table + runtime_.layout().method_table.module);
    return probe.Pointer(probe.Pointer(module + *at.local_module) + at.local_module_objects);
  }
  const uint64_t auxiliary = probe.Pointer(method_table + at.auxiliary);
  if (probe.Pointer(auxiliary - kStaticsOwnerBefore) != method_table) return 0;
  return probe.Pointer(auxiliary - kStaticsBefore) & ~kStaticsNotReady;
}

uint64_t CoreLibFields::StaticObject(MemoryProbe& probe, uint64_t method_table, absl::string_view field) {
  main_loop_.Check();
  const std::optional<Field> found = method_table == 0 ? std::nullopt : Find(probe, method_table, field);
  if (!found || !found->is_static) return 0;
  const uint64_t objects = StaticObjects(probe, method_table);
  return objects == 0 || !probe.ok() ? 0 : probe.Pointer(objects + found->offset);
}

}  // namespace clrsampler
