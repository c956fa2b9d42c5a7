#include "formats/pe/signature_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// II.23.1.16 and src/coreclr/inc/corhdr.h.
enum Element : uint8_t {
  kPointer = 0x0F,
  kByReference = 0x10,
  kValueType = 0x11,
  kClass = 0x12,
  kTypeVariable = 0x13,
  kArray = 0x14,
  kFunctionPointer = 0x1B,
  kSzArray = 0x1D,
  kMethodVariable = 0x1E,
  kRequiredModifier = 0x1F,
  kOptionalModifier = 0x20,
  kNativeValueType = 0x3D,
  kCanon = 0x3E,
  kSentinel = 0x41,
  kPinned = 0x45,
};

constexpr absl::string_view kPrimitiveNames[] = {"",
                                                 "System.Void",
                                                 "System.Boolean",
                                                 "System.Char",
                                                 "System.SByte",
                                                 "System.Byte",
                                                 "System.Int16",
                                                 "System.UInt16",
                                                 "System.Int32",
                                                 "System.UInt32",
                                                 "System.Int64",
                                                 "System.UInt64",
                                                 "System.Single",
                                                 "System.Double",
                                                 "System.String"};

constexpr absl::string_view PrimitiveName(uint8_t element) {
  if (element < std::size(kPrimitiveNames)) return kPrimitiveNames[element];
  if (element == 0x16) return "System.TypedReference";
  if (element == 0x18) return "System.IntPtr";
  if (element == 0x19) return "System.UIntPtr";
  if (element == 0x1C) return "System.Object";
  if (element == kCanon) return "System.__Canon";
  return "";
}

// Asked for each of some 100,000 elements when CoreLib is indexed.
constexpr std::array<bool, 256> kIsPrimitive = [] {
  std::array<bool, 256> is_primitive{};
  for (size_t element = 0; element < is_primitive.size(); ++element) {
    is_primitive[element] = !PrimitiveName(static_cast<uint8_t>(element)).empty();
  }
  return is_primitive;
}();

bool Skip(BlobCursor& cursor, uint64_t& budget, int depth);

bool SkipSeveral(BlobCursor& cursor, uint64_t count, uint64_t& budget, int depth) {
  if (count > cursor.remaining()) return false;  // each takes a byte at least
  for (uint64_t i = 0; i < count; ++i) {
    if (!Skip(cursor, budget, depth)) return false;
  }
  return true;
}

// The part behind the element type of an array: rank, sizes, lower bounds. Returns the rank.
std::optional<uint32_t> ReadArrayShape(BlobCursor& cursor) {
  const uint32_t rank = cursor.Number();
  if (rank != 0) {
    for (int list = 0; list < 2; ++list) {
      const uint32_t count = cursor.Number();
      if (count > cursor.remaining()) return std::nullopt;
      for (uint32_t i = 0; i < count; ++i) cursor.Number();
    }
  }
  if (cursor.failed()) return std::nullopt;
  return rank;
}

bool Skip(BlobCursor& cursor, uint64_t& budget, int depth) {
  if (depth > SignatureNames::kMaxDepth || budget == 0) return false;
  --budget;
  const uint8_t element = cursor.Element();
  if (cursor.failed()) return false;
  if (kIsPrimitive[element]) return true;
  switch (element) {
    case kSentinel:
    case kPointer:
    case kByReference:
    case kSzArray:
    case kPinned:
    case kNativeValueType:
      return Skip(cursor, budget, depth + 1);
    case kValueType:
    case kClass:
    case kTypeVariable:
    case kMethodVariable:
      cursor.Number();
      return !cursor.failed();
    case kElementModuleOverride:
    case kRequiredModifier:
    case kOptionalModifier:
      cursor.Number();
      return Skip(cursor, budget, depth + 1);
    case kElementGenericInstance:
      if (!Skip(cursor, budget, depth + 1)) return false;
      return SkipSeveral(cursor, cursor.Number(), budget, depth + 1);
    case kArray:
      return Skip(cursor, budget, depth + 1) && ReadArrayShape(cursor).has_value();
    case kFunctionPointer:
      if ((cursor.Byte() & 0x10) != 0) cursor.Number();
      return SkipSeveral(cursor, uint64_t{cursor.Number()} + 1, budget, depth + 1);
    default:
      return false;
  }
}

}  // namespace

bool SkipType(BlobCursor& cursor, uint64_t& budget) { return Skip(cursor, budget, 0); }

bool SkipR2rMethod(BlobCursor& cursor, uint64_t& budget) {
  const uint32_t flags = cursor.Number();
  if ((flags & kR2rMethodUpdateContext) != 0) cursor.Number();
  if ((flags & kR2rMethodOwnerType) != 0 && !SkipType(cursor, budget)) return false;
  cursor.Number();
  if ((flags & kR2rMethodInstantiation) != 0 && !SkipSeveral(cursor, cursor.Number(), budget, 0)) return false;
  if ((flags & kR2rMethodConstrained) != 0 && !SkipType(cursor, budget)) return false;
  return !cursor.failed();
}

absl::Status SignatureNames::AppendType(BlobCursor& cursor, const SignatureModule& tokens,
                                        const SignatureModule& arguments, GenericArguments generic, std::string& text) {
  if (Append(cursor, {&tokens, &arguments, generic, 0}, text)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("a type signature is damaged at byte ", cursor.offset()));
}

absl::Status SignatureNames::AppendNamedType(MetadataToken token, const SignatureModule& module,
                                             GenericArguments generic, std::string& text) {
  if (AppendToken(token, {&module, &module, generic, 0}, text)) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat("%s has no type with the token 0x%08x", module.name, token.value()));
}

absl::StatusOr<SignatureNames::MethodTypes> SignatureNames::Method(std::span<const std::byte> signature,
                                                                   const SignatureModule& module,
                                                                   GenericArguments generic) {
  BlobCursor cursor(signature);
  if ((cursor.Byte() & 0x10) != 0) cursor.Number();  // number of generic parameters
  const uint32_t count = cursor.Number();
  if (cursor.failed() || count > cursor.remaining()) return absl::DataLossError("a method signature is cut off");
  MethodTypes types;
  RETURN_IF_ERROR(AppendType(cursor, module, module, generic, types.return_type));
  for (uint32_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(AppendType(cursor, module, module, generic, types.parameters.emplace_back()));
  }
  return types;
}

bool SignatureNames::Add(absl::string_view piece, std::string& text) {
  if (piece.size() > bytes_left_) return false;
  bytes_left_ -= piece.size();
  text.append(piece.data(), piece.size());
  return true;
}

bool SignatureNames::Append(BlobCursor& cursor, Scope scope, std::string& text) {
  if (scope.depth > kMaxDepth || elements_left_ == 0) return false;
  --elements_left_;
  ++scope.depth;
  const uint8_t element = cursor.Element();
  if (cursor.failed()) return false;
  if (const absl::string_view name = PrimitiveName(element); !name.empty()) return Add(name, text);
  switch (element) {
    case kValueType:
    case kClass: {
      const std::optional<MetadataToken> token = MetadataTables::DecodeTypeDefOrRef(cursor.Number());
      return token && !cursor.failed() && AppendToken(*token, scope, text);
    }
    case kTypeVariable:
      return AppendVariable(cursor.Number(), scope.generic.type, "!", text);
    case kMethodVariable:
      return AppendVariable(cursor.Number(), scope.generic.method, "!!", text);
    case kElementModuleOverride:
      scope.tokens = modules_->Module(cursor.Number());
      return scope.tokens != nullptr && Append(cursor, scope, text);
    case kElementGenericInstance:
      return AppendInstance(cursor, scope, text);
    case kArray:
      return AppendArray(cursor, scope, text);
    case kFunctionPointer:
      return AppendFunctionPointer(cursor, scope, text);
    case kSzArray:
      return Append(cursor, scope, text) && Add("[]", text);
    case kPointer:
      return Append(cursor, scope, text) && Add("*", text);
    case kByReference:
      return Append(cursor, scope, text) && Add("&", text);
    case kRequiredModifier:
    case kOptionalModifier:
      cursor.Number();
      return Append(cursor, scope, text);
    case kSentinel:
    case kPinned:
    case kNativeValueType:
      return Append(cursor, scope, text);
    default:
      return false;
  }
}

bool SignatureNames::AppendToken(MetadataToken token, Scope scope, std::string& text) {
  const SignatureModule& module = *scope.tokens;
  if (!module.tables) {
    has_tokens_ = true;
    return Add(absl::StrFormat("%s!0x%08x", module.name, token.value()), text);
  }
  if (token.table == MetadataTable::kTypeSpec) {
    const std::optional<std::span<const std::byte>> signature = module.tables->TypeSpec(token.rid);
    if (!signature) return false;
    BlobCursor cursor(*signature);
    scope.arguments = scope.tokens;
    return Append(cursor, scope, text);
  }
  std::string name;
  return module.tables->AppendTypeName(token, name) && Add(name, text);
}

bool SignatureNames::AppendInstance(BlobCursor& cursor, Scope scope, std::string& text) {
  if (!Append(cursor, scope, text)) return false;
  const uint32_t count = cursor.Number();
  if (count > cursor.remaining()) return false;
  scope.tokens = scope.arguments;
  for (uint32_t i = 0; i < count; ++i) {
    if (!Add(i == 0 ? "[" : ", ", text) || !Append(cursor, scope, text)) return false;
  }
  return count == 0 || Add("]", text);
}

bool SignatureNames::AppendArray(BlobCursor& cursor, Scope scope, std::string& text) {
  if (!Append(cursor, scope, text)) return false;
  const std::optional<uint32_t> rank = ReadArrayShape(cursor);
  if (!rank || *rank > 32) return false;  // the runtime's limit, I.8.9.1
  return Add(absl::StrCat("[", std::string(*rank == 0 ? 0 : *rank - 1, ','), "]"), text);
}

bool SignatureNames::AppendFunctionPointer(BlobCursor& cursor, Scope scope, std::string& text) {
  if ((cursor.Byte() & 0x10) != 0) cursor.Number();
  const uint32_t count = cursor.Number();
  if (cursor.failed() || count > cursor.remaining()) return false;
  if (!Append(cursor, scope, text) || !Add(" (", text)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    if (i != 0 && !Add(", ", text)) return false;
    if (!Append(cursor, scope, text)) return false;
  }
  return Add(")", text);
}

bool SignatureNames::AppendVariable(uint32_t index, std::span<const std::string> arguments, absl::string_view mark,
                                    std::string& text) {
  if (index < arguments.size()) return Add(arguments[index], text);
  return Add(absl::StrCat(mark, index), text);
}

}  // namespace clrsampler
