// The second half of R2rImage: from the reference of a method to its name. The index (r2r_image.cc) never needs it.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "formats/byte_reader.h"
#include "formats/names/async_body.h"
#include "formats/pe/r2r_image.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kCoreLibrary = "System.Private.CoreLib";

absl::Status DamagedNames(absl::string_view what) { return absl::DataLossError(absl::StrCat("R2R tables: ", what)); }

bool IsFileNamePart(absl::string_view name) {
  return !name.empty() && name.size() <= 250 && name.find('/') == absl::string_view::npos;
}

// The module that an override at the head of an owner type names, also behind modifiers and instantiations.
std::optional<uint32_t> HeadOverride(BlobCursor cursor) {
  constexpr uint8_t kPointer = 0x0F, kByReference = 0x10, kArray = 0x14, kSzArray = 0x1D;
  uint8_t element = cursor.Element();
  while (element == kElementGenericInstance || element == kSzArray || element == kArray || element == kPointer ||
         element == kByReference) {
    element = cursor.Element();
  }
  if (element != kElementModuleOverride) return std::nullopt;
  return cursor.Number();
}

// The kind of a row in an image whose runtime compiles async methods.
enum class AsyncRow : uint8_t {
  kNone,     // of an older image
  kPlain,    // returns what the metadata says
  kVariant,  // returns what awaiting that gives
};

// Fills `name` with what the row of a method says: module, method, parameters, return type, and the owner where no
// instantiation gave it.
absl::StatusOr<R2rMethodName> Finish(const SignatureModule& module, MetadataToken token, SignatureNames& names,
                                     MethodName name, MethodVariables variables, AsyncRow async) {
  name.module = module.name;
  if (!module.tables) {
    name.method = absl::StrFormat("%s!0x%08x", module.name, token.value());
    return R2rMethodName{std::move(name), true, names.has_tokens()};
  }
  const bool member_ref = token.table == MetadataTable::kMemberRef;
  const std::optional<MetadataMember> row =
      member_ref ? module.tables->MemberRef(token.rid) : module.tables->Method(token.rid);
  if (!row) return DamagedNames(absl::StrFormat("%s has no method 0x%08x", module.name, token.value()));
  GenericArguments generic{name.type_args, {}};
  if (variables == MethodVariables::kReplaced) generic.method = name.method_args;
  if (name.type.empty()) {
    std::optional<MetadataToken> owner;
    if (member_ref) {
      owner = module.tables->MemberRefParent(token.rid);
    } else if (const std::optional<uint32_t> type = module.tables->OwnerOfMethod(token.rid)) {
      owner = MetadataToken{MetadataTable::kTypeDef, *type};
    }
    if (!owner) return DamagedNames(absl::StrFormat("method 0x%08x of %s has no owner", token.value(), module.name));
    RETURN_IF_ERROR(names.AppendNamedType(*owner, module, generic, name.type));
  }
  name.method = std::string(row->name);
  ASSIGN_OR_RETURN(SignatureNames::MethodTypes types, names.Method(row->signature, module, generic));
  name.parameters = std::move(types.parameters);
  if (name.method != ".ctor" && name.method != ".cctor") name.return_type = std::move(types.return_type);
  if (async != AsyncRow::kNone) {
    if (std::optional<std::string> awaited = AwaitedResult(name.return_type); awaited.has_value()) {
      const bool is_variant = async == AsyncRow::kVariant;
      const bool is_async = (row->implementation & kMethodImplAsync) != 0;
      if (!member_ref && (is_async || is_variant)) {
        name.async_body = is_async == is_variant ? AsyncBody::kResult : AsyncBody::kThunk;
      }
      if (is_variant) name.return_type = *std::move(awaited);
    }
  }
  return R2rMethodName{std::move(name), false, names.has_tokens(), member_ref ? 0 : token.rid};
}

}  // namespace

class R2rImage::Modules : public SignatureModules {
 public:
  Modules(R2rImage* image, AssemblyOpener* opener) : image_(image), opener_(opener) {}
  const SignatureModule* Module(uint32_t index) override { return image_->OpenModule(index, *opener_); }
  const SignatureModule* CoreLibrary() { return image_->CoreLibrary(*opener_); }

 private:
  R2rImage* image_;
  AssemblyOpener* opener_;
};

absl::StatusOr<R2rMethodName> R2rImage::Name(uint32_t method, AssemblyOpener& opener, MethodVariables variables) {
  const std::optional<MethodReference> reference = ReferenceOf(method);
  if (!reference) return absl::NotFoundError(absl::StrCat("no method begins at runtime function ", method));
  Modules modules(this, &opener);
  return reference->instance ? NameInstance(reference->value, modules, variables)
                             : NameMethodDef(reference->value, modules, variables);
}

absl::StatusOr<R2rMethodName> R2rImage::NameMethodDef(uint32_t number, Modules& modules, MethodVariables variables) {
  const auto next = std::upper_bound(components_.begin(), components_.end(), number,
                                     [](uint32_t value, const Component& row) { return value < row.first_number; });
  if (next == components_.begin()) return DamagedNames("a method belongs to no component");
  const Component& component = *std::prev(next);
  const SignatureModule* module = modules.Module(component.module);
  if (module == nullptr) return DamagedNames(absl::StrCat("there is no module ", component.module));
  SignatureNames names(&modules);
  return Finish(*module, {MetadataTable::kMethodDef, number - component.first_number + 1}, names, MethodName(),
                variables, has_runtime_async() ? AsyncRow::kPlain : AsyncRow::kNone);
}

// The module that a token belongs to, in the order of src/coreclr/vm/zapsig.cpp (DecodeMethod, GetTypeHandle...). First
// comes the image's own metadata. A context that the signature names replaces it for the method, the owner and types
// that stand alone. Without a context, an override at the head of the owner decides for the method as well. Arguments
// of a generic instance start from the image's own metadata again. So do those of a generic method since R2R 26 (.NET
// 11). Before 26 the context replaces it for these, by crossgen2's own maps. A composite has no metadata of its own:
// each argument there carries its override.
absl::StatusOr<R2rMethodName> R2rImage::NameInstance(uint32_t offset, Modules& modules, MethodVariables variables) {
  BlobCursor cursor(instances_, offset);
  SignatureNames names(&modules);
  MethodName name;
  const uint32_t flags = cursor.Number();
  const SignatureModule* const own = self_ ? &*self_ : nullptr;
  const SignatureModule* context = own;
  if ((flags & kR2rMethodUpdateContext) != 0) {
    context = modules.Module(cursor.Number());
    if (context == nullptr) return DamagedNames("a method signature names a module that does not exist");
  }
  const SignatureModule* member = context;
  if ((flags & kR2rMethodOwnerType) != 0) {
    if ((flags & kR2rMethodUpdateContext) == 0) {
      if (const std::optional<uint32_t> index = HeadOverride(cursor)) {
        member = modules.Module(*index);
      } else if (member == nullptr) {
        member = modules.CoreLibrary();  // the owner is a primitive type
      }
    }
    if (member == nullptr) return DamagedNames("a method signature names a module that does not exist");
    const SignatureModule* owner = context != nullptr ? context : member;
    while (cursor.PeekElement() == kElementModuleOverride && !cursor.failed()) {
      cursor.Byte();
      owner = modules.Module(cursor.Number());
      if (owner == nullptr) return DamagedNames("a method signature names a module that does not exist");
    }
    const SignatureModule& arguments = own != nullptr ? *own : *member;
    const bool instance = cursor.PeekElement() == kElementGenericInstance;
    if (instance) cursor.Byte();
    RETURN_IF_ERROR(names.AppendType(cursor, *owner, arguments, {}, name.type));
    const uint32_t count = instance ? cursor.Number() : 0;
    if (count > cursor.remaining()) return DamagedNames("a method signature is cut off");
    for (uint32_t i = 0; i < count; ++i) {
      RETURN_IF_ERROR(names.AppendType(cursor, arguments, arguments, {}, name.type_args.emplace_back()));
    }
  }
  if (member == nullptr) return DamagedNames("a method signature names no module");
  const uint32_t rid = cursor.Number();
  if ((flags & kR2rMethodInstantiation) != 0) {
    const SignatureModule& arguments = own != nullptr ? *own : *member;
    const SignatureModule& tokens = has_runtime_async() ? arguments : context != nullptr ? *context : *member;
    const uint32_t count = cursor.Number();
    if (count > cursor.remaining()) return DamagedNames("a method signature is cut off");
    for (uint32_t i = 0; i < count; ++i) {
      RETURN_IF_ERROR(names.AppendType(cursor, tokens, arguments, {}, name.method_args.emplace_back()));
    }
  }
  if (cursor.failed()) return DamagedNames("a method signature is cut off");
  const MetadataTable table =
      (flags & kR2rMethodIsMemberRef) != 0 ? MetadataTable::kMemberRef : MetadataTable::kMethodDef;
  const AsyncRow async = !has_runtime_async()                    ? AsyncRow::kNone
                         : (flags & kR2rMethodAsyncVariant) != 0 ? AsyncRow::kVariant
                                                                 : AsyncRow::kPlain;
  return Finish(*member, {table, rid}, names, std::move(name), variables, async);
}

// Module indexes: 0 = the image's own metadata (none in a composite), then its AssemblyRef rows, then (since R2R 6.3)
// the manifest metadata itself, then the AssemblyRef rows of the manifest.
const SignatureModule* R2rImage::OpenModule(uint32_t index, AssemblyOpener& opener) {
  if (index == 0) return self_ ? &*self_ : nullptr;
  if (const auto known = modules_.find(index); known != modules_.end()) return &known->second->module;
  const uint32_t own_references = self_ ? self_->tables->rows(MetadataTable::kAssemblyRef) : 0;
  std::optional<absl::string_view> name;
  std::span<const std::byte> mvid;
  if (index <= own_references) {
    name = self_->tables->AssemblyRefName(index);
  } else {
    uint32_t row = index - own_references;
    if (manifest_has_index_ && row == 1) return manifest_ ? &*manifest_ : nullptr;
    if (manifest_has_index_) --row;
    if (!manifest_) return nullptr;
    name = manifest_->tables->AssemblyRefName(row);
    // Section 118: one MVID for each row. Without the section, or all zero: any build of the assembly will do.
    mvid = SliceAt(mvids_, uint64_t{row - 1} * 16, 16).value_or(std::span<const std::byte>());
  }
  if (!name) return nullptr;
  if (self_ && *name == self_->name) return &*self_;
  return &modules_.emplace(index, Load(*name, mvid, opener)).first->second->module;
}

const SignatureModule* R2rImage::CoreLibrary(AssemblyOpener& opener) {
  if (core_library_) return &core_library_->module;
  const uint32_t rows = manifest_ ? manifest_->tables->rows(MetadataTable::kAssemblyRef) : 0;
  for (uint32_t row = 1; row <= rows; ++row) {
    if (manifest_->tables->AssemblyRefName(row) == kCoreLibrary) {
      return OpenModule(row + (manifest_has_index_ ? 1 : 0), opener);
    }
  }
  core_library_ = Load(kCoreLibrary, {}, opener);
  return &core_library_->module;
}

std::unique_ptr<R2rImage::LoadedModule> R2rImage::Load(absl::string_view simple_name, std::span<const std::byte> mvid,
                                                       AssemblyOpener& opener) {
  auto loaded = std::make_unique<LoadedModule>();
  loaded->module.name = std::string(simple_name);
  std::optional<OpenedAssembly> opened;
  if (IsFileNamePart(simple_name)) opened = opener.Open(simple_name);
  if (opened) {
    const absl::StatusOr<PeImage> pe = PeImage::Parse(opened->bytes);
    const std::optional<std::span<const std::byte>> metadata =
        pe.ok() && pe->metadata() ? pe->Bytes(*pe->metadata()) : std::optional<std::span<const std::byte>>();
    absl::StatusOr<MetadataTables> tables =
        metadata ? MetadataTables::Parse(*metadata) : absl::DataLossError("no metadata");
    const bool any_build = std::all_of(mvid.begin(), mvid.end(), [](std::byte byte) { return byte == std::byte{0}; });
    if (tables.ok() && !any_build) {
      const std::optional<std::array<uint8_t, 16>> actual = tables->Mvid();
      if (!actual || std::memcmp(actual->data(), mvid.data(), mvid.size()) != 0) {
        tables = absl::FailedPreconditionError("another build of the assembly");
      }
    }
    if (tables.ok()) {
      loaded->module.tables = *std::move(tables);
      loaded->keep_alive = std::move(opened->keep_alive);
    }
  }
  if (!loaded->module.tables) missing_.push_back(loaded->module.name);
  return loaded;
}

void R2rImage::ForgetMissing() {
  missing_.clear();
  for (auto it = modules_.begin(); it != modules_.end();) {
    const auto current = it++;
    if (!current->second->module.tables) modules_.erase(current);
  }
  if (core_library_ && !core_library_->module.tables) core_library_.reset();
}

std::string R2rMapText(const MethodName& name) {
  std::string text;
  if (!name.return_type.empty() && name.return_type != "System.Void") absl::StrAppend(&text, name.return_type, " ");
  absl::StrAppend(&text, name.type);
  if (!name.type_args.empty()) absl::StrAppend(&text, "[", absl::StrJoin(name.type_args, ", "), "]");
  absl::StrAppend(&text, "::", name.method, "(");
  if (name.parameters) absl::StrAppend(&text, absl::StrJoin(*name.parameters, ", "));
  return absl::StrCat(text, ")");
}

}  // namespace clrsampler
