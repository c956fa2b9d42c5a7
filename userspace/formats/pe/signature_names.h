// ECMA-335 signatures, with the extensions of ReadyToRun images -> the CLR's texts for types.
//
// Grammar: ECMA-335 II.23.2; R2R's ELEMENT_TYPE_CANON_ZAPSIG (0x3e), ELEMENT_TYPE_MODULE_ZAPSIG (0x3f) and
// ELEMENT_TYPE_NATIVE_VALUETYPE_ZAPSIG (0x3d) from src/coreclr/inc/corhdr.h and readytorun-format.md, "Fixup
// signatures". Texts are those of crossgen2's r2rmap ("System.Func`2[System.Int32, !!0]", "System.Byte&", "System.Void
// (System.Int32)" for a function pointer). Pure. Hostile signatures end after kMaxElements steps, kMaxDepth levels or
// kMaxTextBytes.
#ifndef CLRSAMPLER_FORMATS_PE_SIGNATURE_NAMES_H_
#define CLRSAMPLER_FORMATS_PE_SIGNATURE_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/pe/blob_cursor.h"
#include "formats/pe/metadata_tables.h"

namespace clrsampler {

// Element types that callers must recognise themselves.
constexpr uint8_t kElementGenericInstance = 0x15;
constexpr uint8_t kElementModuleOverride = 0x3F;

// Moves behind one type without reading metadata. False: not a type. `budget` is the number of elements that may be
// visited; what was used is taken off.
bool SkipType(BlobCursor& cursor, uint64_t& budget);

// READYTORUN_METHOD_SIG flags, src/coreclr/inc/readytorun.h. 0x08 (slot) belongs to calls; newer ones are not known
// here.
constexpr uint32_t kR2rMethodInstantiation = 0x04;
constexpr uint32_t kR2rMethodIsMemberRef = 0x10;
constexpr uint32_t kR2rMethodConstrained = 0x20;
constexpr uint32_t kR2rMethodOwnerType = 0x40;
constexpr uint32_t kR2rMethodUpdateContext = 0x80;
constexpr uint32_t kR2rMethodAsyncVariant = 0x100;  // since R2R 26.1

// Moves behind a method signature of R2R: flags, [module], [owner type], rid, [type arguments], [constrained type].
bool SkipR2rMethod(BlobCursor& cursor, uint64_t& budget);

// An assembly or netmodule whose tokens a signature uses. Without tables, its types are written as "Name!0x02000123".
struct SignatureModule {
  std::string name;  // simple assembly name
  std::optional<MetadataTables> tables;
};

// Finds the module of an override; nullptr: there is no such index.
class SignatureModules {
 public:
  virtual ~SignatureModules() = default;
  virtual const SignatureModule* Module(uint32_t index) = 0;
};

struct GenericArguments {
  std::span<const std::string> type;    // for !0, !1, ...
  std::span<const std::string> method;  // for !!0, ...
};

// Writes the types of one name: one object per name, its limits hold for all texts together.
class SignatureNames {
 public:
  static constexpr int kMaxDepth = 64;
  static constexpr uint64_t kMaxElements = 8192;
  static constexpr size_t kMaxTextBytes = 1 << 18;  // the longest name of the .NET 10.0.14 framework has 986

  explicit SignatureNames(SignatureModules* modules) : modules_(modules) {}

  // Appends the text of the type at `cursor`. `tokens` resolves tokens here, `arguments` those inside the arguments of
  // a generic instance, which an override does not reach. DataLoss: not a type, or a limit was met.
  absl::Status AppendType(BlobCursor& cursor, const SignatureModule& tokens, const SignatureModule& arguments,
                          GenericArguments generic, std::string& text);

  // A method signature blob: return type and parameters.
  struct MethodTypes {
    std::string return_type;
    std::vector<std::string> parameters;
  };
  absl::StatusOr<MethodTypes> Method(std::span<const std::byte> signature, const SignatureModule& module,
                                     GenericArguments generic);

  // Appends the name of a TypeDef, TypeRef or TypeSpec, or its token where the module has no tables.
  absl::Status AppendNamedType(MetadataToken token, const SignatureModule& module, GenericArguments generic,
                               std::string& text);

  // Some type was written by its token because its module could not be read.
  bool has_tokens() const { return has_tokens_; }

 private:
  struct Scope {
    const SignatureModule* tokens;
    const SignatureModule* arguments;
    GenericArguments generic;
    int depth;
  };
  bool Append(BlobCursor& cursor, Scope scope, std::string& text);
  bool AppendToken(MetadataToken token, Scope scope, std::string& text);
  bool AppendInstance(BlobCursor& cursor, Scope scope, std::string& text);
  bool AppendFunctionPointer(BlobCursor& cursor, Scope scope, std::string& text);
  bool AppendArray(BlobCursor& cursor, Scope scope, std::string& text);
  bool AppendVariable(uint32_t index, std::span<const std::string> arguments, absl::string_view mark,
                      std::string& text);
  bool Add(absl::string_view piece, std::string& text);

  SignatureModules* modules_;
  uint64_t elements_left_ = kMaxElements;
  size_t bytes_left_ = kMaxTextBytes;
  bool has_tokens_ = false;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PE_SIGNATURE_NAMES_H_
