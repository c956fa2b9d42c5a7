// Names of precompiled code from a ReadyToRun image alone: every runtime function (method body, funclet, cold part) of
// single, composite and cross-module images, x64 and arm64.
//
// Written after dotnet/runtime docs/design/coreclr/botr/readytorun-format.md and src/coreclr/vm/readytoruninfo.cpp (8.0
// to 11.0: R2R 9.1, 10.1, 16.0, 26.1; the encodings used here are the same in all). A newer major version is refused:
// tables that hold together may still mean something else. No IO: other assemblies come through an AssemblyOpener.
//
// Cost, CoreLib of 10.0.14 (50,483 runtime functions): 0.21 MB on the heap and 5 ms for the index
// (tests/bench/pe_bench).
#ifndef CLRSAMPLER_FORMATS_PE_R2R_IMAGE_H_
#define CLRSAMPLER_FORMATS_PE_R2R_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/names/method_name.h"
#include "formats/pe/pe_image.h"
#include "formats/pe/signature_names.h"
#include "formats/runtime/il_map.h"

namespace clrsampler {

// The newest version that was compared with running runtimes: that of .NET 11.
constexpr uint16_t kNewestR2rMajor = 26;
// Those of previews between 10 and 11 were never compared.
constexpr uint16_t kNewestR2rMajorOf10 = 16;
// The oldest whose async methods may be precompiled without a state machine (runtime async), that of .NET 11.
constexpr uint16_t kRuntimeAsyncR2rMajor = 26;

struct OpenedAssembly {
  std::span<const std::byte> bytes;        // a PE file
  std::shared_ptr<const void> keep_alive;  // the bytes live as long as this
};

// Where the metadata of other assemblies comes from: the dlls beside the image, or in the same bundle.
class AssemblyOpener {
 public:
  virtual ~AssemblyOpener() = default;
  virtual std::optional<OpenedAssembly> Open(absl::string_view simple_name) = 0;
};

enum class R2rPart : uint8_t {
  kBody,     // begins at the method's entry
  kFunclet,  // exception handler or filter of the method
  kCold,     // split off; named by no r2rmap
  // The stub of an async method that was suspended: restores it and calls it. No row of the tables names it; it lies
  // behind its method and has debug information of its own, which funclets have not (947 of 947 in the framework of
  // 11.0.0).
  kResumptionStub,
};

// How a method's own type variables stand in its parameters and return type.
enum class MethodVariables : uint8_t {
  kWritten,   // "!!0", as in metadata and in the runtime's perf map and jitdump
  kReplaced,  // by the arguments of the instance, as in an r2rmap
};

// A range [begin, end) of RVAs in the runtime function table.
struct R2rFunction {
  static constexpr uint32_t kNoOwner = UINT32_MAX;

  uint32_t begin = 0;
  uint32_t end = 0;  // where its code ends; data and padding behind it belong to nobody
  uint32_t index = 0;
  uint32_t method = kNoOwner;  // index of the function where its method begins: the same for all parts of one method
  R2rPart part = R2rPart::kBody;
  uint32_t unwind = 0;  // RVA of its unwind data; 0: there is none, but for what the table itself has
};

// A place in the code of a method: what to ask IlMapOf for, and the map that it gives.
struct R2rCodePlace {
  uint32_t method = 0;  // R2rFunction::method
  uint32_t native_offset = 0;

  friend bool operator==(const R2rCodePlace&, const R2rCodePlace&) = default;
};

struct R2rMethodName {
  MethodName name;
  // The assembly that declares the method was not found or is another build: `name` has only `module` and, as `method`,
  // the token ("Component!0x06000123").
  bool method_by_token = false;
  // A type in the name stands as "Component!0x02000123" for the same reason.
  bool types_by_token = false;
  uint32_t rid = 0;  // row of the MethodDef table of `name.module`; 0: not known
};

// Main loop or one worker: Name() opens assemblies lazily and remembers them.
class R2rImage {
 public:
  // Reads the tables. FailedPrecondition: no R2R code in this file (IL only, component of a composite, no .NET image,
  // an architecture we don't know). Unimplemented: newer than kNewestR2rMajor. DataLoss: the tables contradict
  // themselves; nothing of them can be trusted. `pe`'s bytes must outlive the image. `name` is the assembly name to use
  // where the metadata has none.
  static absl::StatusOr<std::unique_ptr<R2rImage>> Open(PeImage pe, absl::string_view name);

  const PeImage& pe() const { return pe_; }
  // Simple name of the assembly; empty: a composite, or unknown.
  absl::string_view name() const { return self_ ? absl::string_view(self_->name) : absl::string_view(); }
  uint32_t function_count() const { return function_count_; }
  // Its runtime compiles async methods without state machines.
  bool has_runtime_async() const { return pe_.r2r()->major >= kRuntimeAsyncR2rMajor; }
  std::optional<R2rFunction> Function(uint32_t index) const;
  // nullopt: no runtime function contains the address (stubs, padding, data between functions).
  std::optional<R2rFunction> Find(uint32_t rva) const;
  bool BeginsAt(uint32_t rva) const;
  // Whether a thunk is there that has a method prepared when it is called first, and later jumps to it. The runtime
  // itself knows them by this section, as STUB_CODE_BLOCK_METHOD_CALL_THUNK (src/coreclr/vm/codeman.h).
  bool IsMethodCallThunk(uint32_t rva) const;
  // Whether methods are split, so that a jump out of a function may lead to its own cold part.
  bool has_cold_parts() const { return first_cold_ < function_count_; }

  // NotFound: the function has no owner. DataLoss: its name can't be read.
  absl::StatusOr<R2rMethodName> Name(uint32_t method, AssemblyOpener& opener,
                                     MethodVariables variables = MethodVariables::kWritten);

  // Where the method's IL map has the address, the call before it for a caller. nullopt: no method is there, or what it
  // has there can't be looked up: a cold part, or a stub, whose IL is in no metadata.
  std::optional<R2rCodePlace> PlaceOf(uint32_t rva, FramePlace place) const;
  // NotFound: no method begins at the function, or the compiler gave it no map. DataLoss: the map or what leads to it
  // is damaged.
  absl::StatusOr<IlMap> IlMapOf(uint32_t method) const;

  // The method's code up to the next method's, funclets and stubs that resume it included; without its cold parts.
  // `method` as in R2rCodePlace.
  RvaRange HotCodeOf(uint32_t method) const;

  // Assemblies that could not be opened: each is tried once. ForgetMissing lets the next Name() try again, for instance
  // for another process that sees other files.
  const std::vector<std::string>& missing_assemblies() const { return missing_; }
  void ForgetMissing();

  size_t heap_bytes() const;
  uint32_t method_count() const { return method_count_; }      // methods of section 103
  uint32_t instance_count() const { return instance_count_; }  // generic instances of section 109

 private:
  class Modules;
  struct Component {
    uint32_t first_number;  // its methods are numbered first_number + rid - 1
    uint32_t module;        // module index
  };

  struct MethodReference {
    bool instance;  // value: offset of the signature in section 109; else number of a method definition
    uint32_t value;
  };

  explicit R2rImage(PeImage pe) : pe_(std::move(pe)) {}
  std::optional<std::span<const std::byte>> SectionBytes(R2rSectionType type) const;
  absl::Status ReadMetadata(absl::string_view name);
  absl::Status ReadFunctions();
  absl::Status ReadMethods(std::span<const std::byte> section, uint32_t module, std::optional<uint32_t> rows);
  absl::Status ReadComponents();
  absl::Status ReadInstances();
  absl::Status ReadHotColdMap();
  absl::Status Claim(uint32_t function, uint32_t owner);
  absl::Status FindResumptionStubs();
  absl::Status LinkFunclets();
  uint32_t Begin(uint32_t index) const;
  uint32_t End(uint32_t index, uint32_t begin) const;
  std::optional<uint32_t> IndexAtOrBefore(uint32_t rva) const;
  uint32_t CodeBytesOf(uint32_t method) const;

  std::optional<MethodReference> ReferenceOf(uint32_t method) const;
  absl::StatusOr<R2rMethodName> NameMethodDef(uint32_t number, Modules& modules, MethodVariables variables);
  absl::StatusOr<R2rMethodName> NameInstance(uint32_t offset, Modules& modules, MethodVariables variables);
  const SignatureModule* OpenModule(uint32_t index, AssemblyOpener& opener);
  const SignatureModule* CoreLibrary(AssemblyOpener& opener);
  struct LoadedModule {
    SignatureModule module;
    std::shared_ptr<const void> keep_alive;
  };
  std::unique_ptr<LoadedModule> Load(absl::string_view simple_name, std::span<const std::byte> mvid,
                                     AssemblyOpener& opener);

  PeImage pe_;
  bool composite_ = false;
  std::span<const std::byte> functions_;
  uint32_t function_bytes_ = 0;
  uint32_t function_count_ = 0;
  uint32_t method_count_ = 0;
  uint32_t instance_count_ = 0;
  uint32_t first_cold_ = UINT32_MAX;
  std::span<const std::byte> instances_;     // section 109
  std::span<const std::byte> mvids_;         // section 118
  std::vector<uint32_t> owners_;             // per function; r2r_image.cc says how
  std::vector<uint32_t> resumption_stubs_;   // functions, ascending
  std::vector<Component> components_;        // sorted by first_number
  std::optional<SignatureModule> self_;      // metadata of the image; a composite has none
  std::optional<SignatureModule> manifest_;  // section 112
  bool manifest_has_index_ = false;          // R2R 6.3 and newer: the manifest itself is a module
  absl::flat_hash_map<uint32_t, std::unique_ptr<LoadedModule>> modules_;
  std::unique_ptr<LoadedModule> core_library_;
  std::vector<std::string> missing_;
};

// The text of an r2rmap row (docs/design/coreclr/botr/r2r-perfmap-format.md) for the same method: return type unless
// void, owner with arguments, method without, parameters. `name` comes from Name(..., kReplaced).
std::string R2rMapText(const MethodName& name);

// An image and where the other assemblies that its names need come from; both borrow from the code that opened them.
struct R2rTables {
  R2rImage* image = nullptr;
  std::unique_ptr<AssemblyOpener> assemblies;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PE_R2R_IMAGE_H_
