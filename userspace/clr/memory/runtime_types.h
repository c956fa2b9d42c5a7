// Names of types and methods, from the runtime's MethodTables, TypeDescs and MethodDescs.
//
// Source: dotnet/runtime src/coreclr/vm/methodtable.h, typedesc.h, method.hpp and
// docs/design/datacontracts/RuntimeTypeSystem.md; compared with the debugger's data access library on 8.0.30, 9.0.19,
// 10.0.12 and 10.0.14. Texts are the CLR's own ("System.Func`2[System.Int32,System.__Canon]", "System.Byte&").
//
// Everything that can be checked is. The TypeDef that owns the method in the metadata must be the one that the
// MethodTable names. The numbers of generic arguments must be those that the metadata declares.
#ifndef CLRSAMPLER_CLR_MEMORY_RUNTIME_TYPES_H_
#define CLRSAMPLER_CLR_MEMORY_RUNTIME_TYPES_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "clr/memory/memory_probe.h"
#include "clr/memory/runtime_layout.h"
#include "clr/memory/runtime_modules.h"
#include "formats/names/method_name.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct RuntimeMethod {
  MethodName name;                              // without tier
  uint32_t token = 0;                           // MethodDef; 0: a method without metadata
  std::shared_ptr<const RuntimeModule> module;  // that the token is of
  uint64_t module_address = 0;                  // of the runtime's Module that it belongs to, with or without a token
  uint16_t implementation = 0;                  // MethodImplAttributes
  bool dynamic = false;                         // DynamicMethod or IL stub: no metadata
  bool tiering_eligible = false;
  uint64_t code_data = 0;  // 9 and newer: MethodDescCodeData
};

// A class or structure in its parts.
struct RuntimeType {
  std::string name;                 // without arguments, "System.Threading.Tasks.Task`1"
  std::string module;               // simple name of the assembly that defines it
  uint32_t row = 0;                 // of its TypeDef there
  std::vector<uint64_t> arguments;  // TypeHandles
  uint32_t object_bytes = 0;        // from an object's address to its end; of arrays and strings without elements
  bool is_class = true;             // else a structure
  bool collectible = false;         // it can be freed while the process runs
};

// Whether this can be the name of a dynamic method: UTF-8 without control characters.
bool IsMethodName(absl::string_view text);

// One process. Main loop only.
class RuntimeTypes {
 public:
  RuntimeTypes(const RuntimeLayout& layout, RuntimeModules& modules) : layout_(layout), modules_(modules) {}

  // With a failed probe the result is of no meaning. `transient`: the method can be freed while the process runs.
  RuntimeMethod Method(MemoryProbe& probe, uint64_t method_desc, bool transient);

  // The text of a TypeHandle, as of now: the address of a type that was freed may be another type's.
  std::string Type(MemoryProbe& probe, uint64_t handle);

  // nullopt, with or without a failed probe: it is no class with a row in its assembly's metadata.
  std::optional<RuntimeType> Describe(MemoryProbe& probe, uint64_t method_table);

  // Whether the arguments of generic methods may be named: their place is not checked by anything but a self test.
  void TrustMethodArguments(bool trust) { trust_method_arguments_ = trust; }

  void ForgetTransient();

 private:
  using MethodTableBlock = std::array<std::byte, RuntimeLayout::MethodTable::kBytes>;
  using MethodDescBlock = std::array<std::byte, RuntimeLayout::MethodDesc::kBytes>;
  static constexpr int kMaxDepth = 12;
  static constexpr uint32_t kMaxArguments = 64;
  static constexpr size_t kMaxTypeText = 4096;

  // As many as fit into a bound of their number, and into one of their bytes.
  struct Texts {
    static constexpr size_t kMaxTypes = 1 << 18, kMaxTextBytes = 16 << 20;
    absl::flat_hash_map<uint64_t, std::string> by_handle;
    size_t bytes = 0;

    void Add(uint64_t handle, const std::string& text);
    void Clear() {
      by_handle.clear();
      bytes = 0;
    }
  };

  // The text of a TypeHandle.
  std::string TypeText(MemoryProbe& probe, uint64_t handle, bool transient, int depth);
  std::string TypeDescText(MemoryProbe& probe, uint64_t desc, bool transient, int depth);
  std::string ArrayText(MemoryProbe& probe, const MethodTableBlock& table, bool transient, int depth);
  std::vector<std::string> TypeArguments(MemoryProbe& probe, const MethodTableBlock& table, bool transient, int depth);
  std::vector<uint64_t> ArgumentHandles(MemoryProbe& probe, const MethodTableBlock& table);
  std::vector<std::string> TextsAt(MemoryProbe& probe, uint64_t handles, uint32_t count, bool transient, int depth);
  std::shared_ptr<const RuntimeModule> ModuleOf(MemoryProbe& probe, uint64_t address, const MethodTableBlock& table,
                                                bool transient);
  uint32_t TypeDefOf(const MethodTableBlock& table) const;
  uint64_t DefiningModuleOf(MemoryProbe& probe, uint64_t address, const MethodTableBlock& table) const;
  // Before .NET 9, of a type that is its own canonical one.
  uint64_t OverridingModuleOf(MemoryProbe& probe, uint64_t address, const MethodTableBlock& table) const;

  void NameDynamicMethod(MemoryProbe& probe, uint64_t name_address, RuntimeMethod& method);
  // The body of an async method that it is.
  void NameArrayMethod(MemoryProbe& probe, uint16_t slot, const MethodTableBlock& table, bool transient,
                       RuntimeMethod& method);
  void NameMethodArguments(MemoryProbe& probe, const MethodDescBlock& desc, const RuntimeModule& module, uint32_t rid,
                           bool transient, RuntimeMethod& method);
  void SetAsyncBody(MemoryProbe& probe, uint64_t address, const MethodDescBlock& desc, MethodName& name);
  bool NameFromMetadata(MemoryProbe& probe, const RuntimeModule& module, uint32_t type, uint32_t method_rid,
                        RuntimeMethod& method);

  const RuntimeLayout& layout_;
  RuntimeModules& modules_;
  bool trust_method_arguments_ = false;
  Texts permanent_, transient_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_RUNTIME_TYPES_H_
