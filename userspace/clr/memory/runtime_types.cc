#include "clr/memory/runtime_types.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "formats/names/async_body.h"

namespace clrsampler {
namespace {

// MethodTable flags, src/coreclr/vm/methodtable.h; the same in 8 to 11.
constexpr uint32_t kHasComponentSize = 0x80000000;
constexpr uint32_t kCategoryMask = 0x000C0000, kCategoryArray = 0x00080000, kSzArray = 0x00020000;
constexpr uint32_t kCategoryValueType = 0x00040000;
constexpr uint32_t kGenericsMask = 0x00000030;

// MethodDesc classification, src/coreclr/vm/method.hpp.
constexpr uint16_t kClassMask = 7;
constexpr uint16_t kClassIl = 0, kClassArray = 4, kClassInstantiated = 5, kClassComInterop = 6, kClassDynamic = 7;
constexpr uint16_t kHasOwnSlot = 0x08, kHasImplementation = 0x10, kHasCodeSlot = 0x20, kHasAsyncData = 0x40;
constexpr uint16_t kTieringEligible = 0x8000;  // in flags3
// AsyncMethodData: 5 of the body that awaits, 0x12 of the thunk that returns a task.
constexpr uint32_t kAsyncVariant = 0x04, kAsyncThunk = 0x10;

// TypeDesc kinds: element types of ECMA-335 II.23.1.16.
constexpr uint8_t kPointer = 0x0F, kByRef = 0x10, kTypeVariable = 0x13, kFunctionPointer = 0x1B, kMethodVariable = 0x1E;

constexpr uint64_t kTypeDescTag = 2;
constexpr uint32_t kArrayBaseBytes = 24;  // header, MethodTable and length of an array without bounds
constexpr uint32_t kArrayBoundBytes = 8;  // length and lower bound of one dimension
constexpr uint32_t kMaxArrayRank = 32;    // ECMA-335 II.23.2.13; the runtime refuses more
constexpr size_t kMaxDynamicName = 1024;

// Signatures of MethodDefs name no other modules. A damaged one may.
class NoModules : public SignatureModules {
 public:
  const SignatureModule* Module(uint32_t) override { return nullptr; }
};

}  // namespace

// The runtime keeps names as UTF-8. Bytes at a wrong place rarely are UTF-8. In a test on 8.0.30 and 9.0.19 the offset
// of a dynamic method's name was moved by 8. Every wrong name that passed a check for control characters was no UTF-8.
bool IsMethodName(absl::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto first = static_cast<uint8_t>(text[i++]);
    if (first < 0x20 || first == 0x7F || (first >= 0x80 && first < 0xC2) || first > 0xF4) return false;
    for (int more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3; more > 0; --more, ++i) {
      if (i == text.size() || (static_cast<uint8_t>(text[i]) & 0xC0) != 0x80) return false;
    }
  }
  return !text.empty();
}

void RuntimeTypes::ForgetTransient() {
  main_loop_.Check();
  transient_.Clear();
  modules_.ForgetTransient();
}

uint32_t RuntimeTypes::TypeDefOf(const MethodTableBlock& table) const {
  return layout_.method_table.TypeDefRow(FieldOf<uint32_t>(table, layout_.method_table.flags2));
}

std::shared_ptr<const RuntimeModule> RuntimeTypes::ModuleOf(MemoryProbe& probe, uint64_t address,
                                                            const MethodTableBlock& table, bool transient) {
  return modules_.At(probe, DefiningModuleOf(probe, address, table), transient);
}

// Before .NET 9 the field is the module that loaded the type. With arguments that can be freed that may be another one
// than the module that defines it, which is then in a slot of the canonical instantiation (MethodTable::GetModule,
// src/coreclr/vm/methodtable.cpp of 8.0).
uint64_t RuntimeTypes::DefiningModuleOf(MemoryProbe& probe, uint64_t address, const MethodTableBlock& table) const {
  const auto& at = layout_.method_table;
  if (at.rid_in_flags2) return FieldOf<uint64_t>(table, at.module);
  constexpr uint64_t kIsCanonicalTable = 3;  // bits that are clear in the address of a class
  const uint32_t flags = FieldOf<uint32_t>(table, at.flags);
  const uint64_t canonical = FieldOf<uint64_t>(table, layout_.fields.class_or_canonical);
  const bool is_instance = (flags & kHasComponentSize) == 0 && (flags & kGenericsMask) != 0;
  if (!is_instance || (flags & at.collectible) == 0 || (canonical & kIsCanonicalTable) == 0) {
    return OverridingModuleOf(probe, address, table);
  }
  const uint64_t shared_address = canonical & ~kIsCanonicalTable;
  const auto shared = probe.Block<RuntimeLayout::MethodTable::kBytes>(shared_address);
  probe.Require(TypeDefOf(shared) == TypeDefOf(table), "a type is an instance of another one");
  return OverridingModuleOf(probe, shared_address, shared);
}

// The low bits of the second flag word say which of the slots before this one there are. The first two of all lie in
// the object, and the others behind it and behind the pointers to the chunks of virtual slots. The second slot in the
// object is the interface map's own, so that alone it leaves the first one free (MultipurposeSlotOffset).
uint64_t RuntimeTypes::OverridingModuleOf(MemoryProbe& probe, uint64_t address, const MethodTableBlock& table) const {
  constexpr uint16_t kSlotsMask = 0xF, kInterfaceMap = 0x2, kHasModuleOverride = 0x10;
  constexpr uint32_t kFirstSlot = 48, kSecondSlot = 56, kVirtualsInChunk = 8;
  const auto& at = layout_.method_table;
  const uint16_t flags2 = FieldOf<uint16_t>(table, at.flags2);
  if ((flags2 & kHasModuleOverride) == 0) return FieldOf<uint64_t>(table, at.module);
  const uint32_t slots = flags2 & kSlotsMask;
  if (slots == 0 || slots == kInterfaceMap) return FieldOf<uint64_t>(table, kFirstSlot);
  const auto before = static_cast<uint32_t>(std::popcount(slots));
  if (before == 1) return FieldOf<uint64_t>(table, kSecondSlot);
  const uint32_t virtuals = FieldOf<uint16_t>(table, at.virtuals);
  const uint32_t chunks = (virtuals + kVirtualsInChunk - 1) / kVirtualsInChunk;
  return probe.Pointer(address + RuntimeLayout::MethodTable::kBytes + 8 * (chunks + before - 2));
}

std::string RuntimeTypes::Type(MemoryProbe& probe, uint64_t handle) {
  main_loop_.Check();
  bool transient = !permanent_.by_handle.contains(handle);
  if (transient && (handle & kTypeDescTag) == 0) {
    const auto table = probe.Block<RuntimeLayout::MethodTable::kBytes>(handle);
    if (!probe.ok()) return "";
    transient = (FieldOf<uint32_t>(table, layout_.method_table.flags) & layout_.method_table.collectible) != 0;
  }
  if (transient) ForgetTransient();
  return TypeText(probe, handle, transient, 0);
}

void RuntimeTypes::Texts::Add(uint64_t handle, const std::string& text) {
  if (by_handle.size() >= kMaxTypes || bytes + text.size() > kMaxTextBytes) Clear();
  if (by_handle.emplace(handle, text).second) bytes += text.size();
}

std::string RuntimeTypes::TypeText(MemoryProbe& probe, uint64_t handle, bool transient, int depth) {
  main_loop_.Check();
  Texts& texts = transient ? transient_ : permanent_;
  for (const Texts* const some : {&permanent_, &texts}) {
    if (const auto known = some->by_handle.find(handle); known != some->by_handle.end()) return known->second;
  }
  if (depth > kMaxDepth) return "...";
  std::string text;
  if ((handle & kTypeDescTag) != 0) {
    text = TypeDescText(probe, handle & ~kTypeDescTag, transient, depth);
  } else {
    const auto table = probe.Block<RuntimeLayout::MethodTable::kBytes>(handle);
    const uint32_t flags = FieldOf<uint32_t>(table, layout_.method_table.flags);
    if ((flags & kHasComponentSize) != 0 && (flags & kCategoryMask) == kCategoryArray) {
      text = ArrayText(probe, table, transient, depth);
    } else {
      std::shared_ptr<const RuntimeModule> module = ModuleOf(probe, handle, table, transient);
      if (module == nullptr) return "";
      const MetadataToken type{MetadataTable::kTypeDef, TypeDefOf(table)};
      if (module->emitted && (!module->names.tables || type.rid > module->names.tables->rows(type.table))) {
        module = modules_.Reload(probe, module->address, transient);
        if (module == nullptr) return "";
      }
      if (!module->names.tables) {
        text =
            absl::StrFormat("%s!0x%08x", module->names.name.empty() ? "<emitted>" : module->names.name, type.value());
      } else if (!module->names.tables->AppendTypeName(type, text)) {
        probe.Fail(ProbeFailure::kContradiction, "a type has no row in the metadata");
        return "";
      }
      const std::vector<std::string> arguments = TypeArguments(probe, table, transient, depth);
      if (module->names.tables) {
        probe.Require(arguments.size() == module->names.tables->GenericParameterCount(type),
                      "another number of type arguments than the metadata declares");
      }
      if (!arguments.empty()) absl::StrAppend(&text, "[", absl::StrJoin(arguments, ","), "]");
    }
  }
  if (!probe.ok()) return "";
  if (text.size() > kMaxTypeText) text = absl::StrCat(text.substr(0, kMaxTypeText), "...");
  texts.Add(handle, text);
  return text;
}

std::string RuntimeTypes::TypeDescText(MemoryProbe& probe, uint64_t address, bool transient, int depth) {
  const auto desc = probe.Block<RuntimeLayout::TypeDesc::kBytes>(address);
  const auto& at = layout_.type_desc;
  switch (FieldOf<uint8_t>(desc, 0)) {
    case kPointer:
      return absl::StrCat(TypeText(probe, FieldOf<uint64_t>(desc, at.argument), transient, depth + 1), "*");
    case kByRef:
      return absl::StrCat(TypeText(probe, FieldOf<uint64_t>(desc, at.argument), transient, depth + 1), "&");
    case kTypeVariable:
    case kMethodVariable: {
      const auto module = modules_.At(probe, FieldOf<uint64_t>(desc, at.variable_module), transient);
      const uint32_t token = FieldOf<uint32_t>(desc, at.variable_token);
      if (module == nullptr || !module->names.tables) return "?";
      const auto name = module->names.tables->GenericParameterName(token & 0xFFFFFF);
      if (!probe.Require(name.has_value(), "a type variable has no row in the metadata")) return "";
      return std::string(*name);
    }
    case kFunctionPointer: {
      const uint32_t count = FieldOf<uint32_t>(desc, at.function_count);
      if (!probe.Require(count < kMaxArguments, "a function pointer with too many parameters")) return "";
      const std::vector<std::string> types = TextsAt(probe, address + at.function_types, count + 1, transient, depth);
      if (types.empty()) return "";
      return absl::StrCat(types[0], " (", absl::StrJoin(types.begin() + 1, types.end(), ", "), ")");
    }
  }
  probe.Fail(ProbeFailure::kUnsupported, "a type of an unknown kind");
  return "";
}

std::string RuntimeTypes::ArrayText(MemoryProbe& probe, const MethodTableBlock& table, bool transient, int depth) {
  // Arrays keep their element type where classes keep their dictionaries.
  const std::string element =
      TypeText(probe, FieldOf<uint64_t>(table, layout_.method_table.arguments), transient, depth + 1);
  if ((FieldOf<uint32_t>(table, layout_.method_table.flags) & kSzArray) != 0) return absl::StrCat(element, "[]");
  const uint32_t base_size = FieldOf<uint32_t>(table, layout_.method_table.base_size);
  // Each dimension adds its length and its lower bound.
  const uint32_t bounds = base_size - kArrayBaseBytes, rank = bounds / kArrayBoundBytes;
  if (!probe.Require(base_size > kArrayBaseBytes && bounds % kArrayBoundBytes == 0 && rank <= kMaxArrayRank,
                     "an array of no rank")) {
    return "";
  }
  return rank == 1 ? absl::StrCat(element, "[*]") : absl::StrCat(element, "[", std::string(rank - 1, ','), "]");
}

std::optional<RuntimeType> RuntimeTypes::Describe(MemoryProbe& probe, uint64_t method_table) {
  main_loop_.Check();
  const auto table = probe.Block<RuntimeLayout::MethodTable::kBytes>(method_table);
  const uint32_t flags = FieldOf<uint32_t>(table, layout_.method_table.flags);
  if ((flags & kHasComponentSize) != 0) return std::nullopt;
  RuntimeType type;
  // The runtime counts the word before the object, too.
  type.object_bytes = FieldOf<uint32_t>(table, layout_.method_table.base_size) - sizeof(uint64_t);
  type.is_class = (flags & kCategoryMask) != kCategoryValueType;
  type.collectible = (flags & layout_.method_table.collectible) != 0;
  const std::shared_ptr<const RuntimeModule> module = ModuleOf(probe, method_table, table, type.collectible);
  if (module == nullptr || !module->names.tables) return std::nullopt;
  type.module = module->names.name;
  type.row = TypeDefOf(table);
  const MetadataToken token{MetadataTable::kTypeDef, type.row};
  if (!module->names.tables->AppendTypeName(token, type.name)) return std::nullopt;
  type.arguments = ArgumentHandles(probe, table);
  if (!probe.ok() || type.arguments.size() != module->names.tables->GenericParameterCount(token)) return std::nullopt;
  return type;
}

std::vector<std::string> RuntimeTypes::TypeArguments(MemoryProbe& probe, const MethodTableBlock& table, bool transient,
                                                     int depth) {
  std::vector<std::string> texts;
  for (const uint64_t handle : ArgumentHandles(probe, table)) {
    if (!probe.ok()) return {};
    texts.push_back(TypeText(probe, handle, transient, depth + 1));
  }
  return texts;
}

std::vector<uint64_t> RuntimeTypes::ArgumentHandles(MemoryProbe& probe, const MethodTableBlock& table) {
  const uint32_t flags = FieldOf<uint32_t>(table, layout_.method_table.flags);
  if ((flags & kHasComponentSize) != 0 || (flags & kGenericsMask) == 0) return {};
  const uint64_t dictionaries = FieldOf<uint64_t>(table, layout_.method_table.arguments);
  if (!probe.Require(dictionaries != 0, "a generic type without arguments")) return {};
  // GenericsDictInfo stands before the list: u16 number of dictionaries, u16 number of arguments. The last dictionary
  // is the type's own, the others its base classes'.
  const uint32_t info = probe.Value<uint32_t>(dictionaries - 4);
  const uint32_t count = info & 0xFFFF, arguments = info >> 16;
  if (!probe.Require(count != 0 && count <= kMaxArguments && arguments != 0 && arguments <= kMaxArguments,
                     "an impossible number of type arguments")) {
    return {};
  }
  std::vector<uint64_t> handles(arguments);
  probe.Read(probe.Pointer(dictionaries + 8 * (count - 1)), std::as_writable_bytes(std::span(handles)));
  return handles;
}

std::vector<std::string> RuntimeTypes::TextsAt(MemoryProbe& probe, uint64_t address, uint32_t count, bool transient,
                                               int depth) {
  std::vector<uint64_t> handles(count);
  probe.Read(address, std::as_writable_bytes(std::span(handles)));
  std::vector<std::string> texts;
  for (const uint64_t handle : handles) {
    if (!probe.ok()) return {};
    texts.push_back(TypeText(probe, handle, transient, depth + 1));
  }
  return texts;
}

RuntimeMethod RuntimeTypes::Method(MemoryProbe& probe, uint64_t address, bool transient) {
  main_loop_.Check();
  RuntimeMethod method;
  const auto desc = probe.Block<RuntimeLayout::MethodDesc::kBytes>(address);
  const auto& at = layout_.method_desc;
  const uint16_t flags3 = FieldOf<uint16_t>(desc, at.flags3);
  const uint16_t kind = FieldOf<uint16_t>(desc, at.flags) & kClassMask;
  const uint8_t chunk_index = FieldOf<uint8_t>(desc, at.chunk_index);
  method.tiering_eligible = (flags3 & kTieringEligible) != 0;
  if (at.code_data) method.code_data = FieldOf<uint64_t>(desc, *at.code_data);

  const auto chunk = probe.Block<24>(address - uint64_t{chunk_index} * 8 - layout_.method_desc_chunk.bytes);
  probe.Require(chunk_index <= FieldOf<uint8_t>(chunk, layout_.method_desc_chunk.size), "a method outside its chunk");
  const uint32_t remainder_bits = layout_.token_remainder_bits;
  const uint32_t rid = (FieldOf<uint16_t>(chunk, layout_.method_desc_chunk.token_range) & 0xFFF) << remainder_bits |
                       (flags3 & ((1u << remainder_bits) - 1));
  const uint64_t table_address = FieldOf<uint64_t>(chunk, layout_.method_desc_chunk.method_table);
  const auto table = probe.Block<RuntimeLayout::MethodTable::kBytes>(table_address);
  if (!probe.ok()) return method;
  method.module_address = DefiningModuleOf(probe, table_address, table);

  if (kind == kClassDynamic) {
    NameDynamicMethod(probe, FieldOf<uint64_t>(desc, layout_.dynamic_method_name), method);
    return method;
  }
  if (kind == kClassComInterop) {
    probe.Fail(ProbeFailure::kUnsupported, "a method of a COM object");
    return method;
  }
  if (kind == kClassArray) {
    NameArrayMethod(probe, FieldOf<uint16_t>(desc, at.slot), table, transient, method);
    return method;
  }
  std::shared_ptr<const RuntimeModule> module = modules_.At(probe, method.module_address, transient);
  if (module == nullptr) return method;
  const uint32_t type = TypeDefOf(table);
  if (module->emitted && (!module->names.tables || rid > module->names.tables->rows(MetadataTable::kMethodDef) ||
                          type > module->names.tables->rows(MetadataTable::kTypeDef))) {
    module = modules_.Reload(probe, module->address, transient);
    if (module == nullptr) return method;
  }
  method.token = static_cast<uint32_t>(MetadataTable::kMethodDef) << 24 | rid;
  method.name.module = module->names.name;
  if (!module->names.tables) {
    probe.Fail(ProbeFailure::kUnsupported, "a method of a module without metadata");
    return method;
  }
  method.name.type_args = TypeArguments(probe, table, transient, 0);
  if (kind == kClassInstantiated) NameMethodArguments(probe, desc, *module, rid, transient, method);
  if (NameFromMetadata(probe, *module, type, rid, method)) SetAsyncBody(probe, address, desc, method.name);
  method.module = std::move(module);
  return method;
}

void RuntimeTypes::NameArrayMethod(MemoryProbe& probe, uint16_t slot, const MethodTableBlock& table, bool transient,
                                   RuntimeMethod& method) {
  static constexpr const char* kNames[] = {"Get", "Set", "Address", ".ctor"};
  const int number = slot - FieldOf<uint16_t>(table, layout_.method_table.virtuals);
  if (!probe.Require(number >= 0, "an array method outside its table")) return;
  method.name.type = ArrayText(probe, table, transient, 0);
  method.name.method = kNames[std::min(number, 3)];
}

void RuntimeTypes::NameMethodArguments(MemoryProbe& probe, const MethodDescBlock& desc, const RuntimeModule& module,
                                       uint32_t rid, bool transient, RuntimeMethod& method) {
  const uint32_t count = FieldOf<uint16_t>(desc, layout_.instantiated_method.count);
  const MetadataToken token{MetadataTable::kMethodDef, rid};
  probe.Require(count == module.names.tables->GenericParameterCount(token) && count <= kMaxArguments,
                "another number of method arguments than the metadata declares");
  if (!probe.ok() || count == 0 || !trust_method_arguments_) return;
  const uint64_t arguments = FieldOf<uint64_t>(desc, layout_.instantiated_method.arguments);
  if (arguments != 0) method.name.method_args = TextsAt(probe, arguments, count, transient, 0);
}

void RuntimeTypes::SetAsyncBody(MemoryProbe& probe, uint64_t address, const MethodDescBlock& desc, MethodName& name) {
  const uint16_t flags = FieldOf<uint16_t>(desc, layout_.method_desc.flags), kind = flags & kClassMask;
  if (!layout_.async_method || (flags & kHasAsyncData) == 0 || (kind != kClassIl && kind != kClassInstantiated)) return;
  const RuntimeLayout::AsyncMethod& at = *layout_.async_method;
  uint64_t data = address + (kind == kClassIl ? at.method_bytes : at.instantiated_bytes);
  if ((flags & kHasOwnSlot) != 0) data += at.own_slot;
  if ((flags & kHasImplementation) != 0) data += at.implementation;
  if ((flags & kHasCodeSlot) != 0) data += at.code_slot;
  const uint32_t async = probe.Value<uint32_t>(data + at.flags);
  std::optional<std::string> awaited = AwaitedResult(name.return_type);
  if (!probe.ok() || !awaited.has_value()) return;
  if ((async & (kAsyncThunk | kAsyncVariant)) == 0) return;
  name.async_body = (async & kAsyncThunk) != 0 ? AsyncBody::kThunk : AsyncBody::kResult;
  if ((async & kAsyncVariant) != 0) name.return_type = *std::move(awaited);
}

void RuntimeTypes::NameDynamicMethod(MemoryProbe& probe, uint64_t name_address, RuntimeMethod& method) {
  method.dynamic = true;
  method.name.kind = MethodKind::kDynamicMethod;
  method.name.type = "dynamicClass";
  // It has one before it is compiled (src/coreclr/vm/dynamicmethod.cpp). A method that has none is something else.
  if (!probe.Require(name_address != 0, "a dynamic method without a name")) return;
  method.name.method = probe.Text(name_address, kMaxDynamicName);
  probe.Require(IsMethodName(method.name.method), "a dynamic method's name is no text");
  if (absl::StartsWith(method.name.method, "IL_STUB")) method.name.kind = MethodKind::kIlStub;
}

bool RuntimeTypes::NameFromMetadata(MemoryProbe& probe, const RuntimeModule& module, uint32_t type, uint32_t rid,
                                    RuntimeMethod& method) {
  const MetadataTables& tables = *module.names.tables;
  const std::optional<uint32_t> owner = tables.OwnerOfMethod(rid);
  if (!probe.Require(owner.has_value() && *owner == type, "metadata and runtime disagree on a method's type")) {
    return false;
  }
  const MetadataToken token{MetadataTable::kTypeDef, type};
  const std::optional<MetadataMember> row = tables.Method(rid);
  if (!probe.Require(row.has_value() && tables.AppendTypeName(token, method.name.type), "a method without a name")) {
    return false;
  }
  if (!probe.Require(method.name.type_args.size() == tables.GenericParameterCount(token),
                     "another number of type arguments than the metadata declares")) {
    return false;
  }
  method.name.method = std::string(row->name);
  method.implementation = row->implementation;
  NoModules no_modules;
  SignatureNames names(&no_modules);
  const absl::StatusOr<SignatureNames::MethodTypes> types =
      names.Method(row->signature, module.names, {method.name.type_args, {}});
  if (types.ok()) {
    method.name.parameters = types->parameters;
    if (method.name.method != ".ctor" && method.name.method != ".cctor") method.name.return_type = types->return_type;
  }
  return true;
}

}  // namespace clrsampler
