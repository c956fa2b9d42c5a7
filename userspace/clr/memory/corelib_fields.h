// Classes of System.Private.CoreLib, their fields and their static objects, by name: what the runtime's own managed
// code keeps about threads and locks.
//
//   TypeDef by its name in the metadata -> MethodTable by the module's map -> EEClass -> FieldDesc of the field's token
//
// A FieldDesc has to be of that class and that token, and a static object of a class that the caller asks for, so that
// a wrong offset gives no answer.
#ifndef CLRSAMPLER_CLR_MEMORY_CORELIB_FIELDS_H_
#define CLRSAMPLER_CLR_MEMORY_CORELIB_FIELDS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "clr/memory/memory_probe.h"
#include "clr/memory/runtime_memory.h"
#include "status/thread_checker.h"

namespace clrsampler {

// The bytes before the fields of an object: the address of its MethodTable.
inline constexpr uint32_t kObjectFields = 8;

// One process. Main loop only. Borrows the runtime.
class CoreLibFields {
 public:
  explicit CoreLibFields(RuntimeMemory& runtime) : runtime_(runtime) {}

  // The MethodTable of "System.Threading.ThreadPoolWorkQueue+WorkStealingQueue"; 0: there is no such class, or the
  // program has not used it yet.
  uint64_t Type(MemoryProbe& probe, absl::string_view name);

  // Whether a MethodTable is of that class, or of an instantiation of it ("System.Collections.Generic.List`1").
  bool IsOf(MemoryProbe& probe, uint64_t method_table, absl::string_view name);

  // The offset of an instance's field: in a structure from its start, in an object from kObjectFields on. nullopt: it
  // has none.
  std::optional<uint32_t> Offset(MemoryProbe& probe, uint64_t method_table, absl::string_view field);

  // The object that a static field refers to; 0: none, or it could not be read.
  uint64_t StaticObject(MemoryProbe& probe, uint64_t method_table, absl::string_view field);

 private:
  struct Field {
    bool is_static = false;
    uint32_t offset = 0;
  };
  std::optional<Field> Find(MemoryProbe& probe, uint64_t method_table, absl::string_view field);
  std::shared_ptr<const RuntimeModule> CoreLib(MemoryProbe& probe);
  uint32_t TypeDefNamed(const RuntimeModule& core_lib, absl::string_view name);
  uint32_t TypeDefOf(MemoryProbe& probe, uint64_t method_table) const;
  uint64_t StaticObjects(MemoryProbe& probe, uint64_t method_table) const;

  RuntimeMemory& runtime_;
  absl::flat_hash_map<std::string, uint32_t> type_defs_;  // rid by name
  absl::flat_hash_map<uint64_t, absl::flat_hash_map<std::string, Field>> fields_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_CORELIB_FIELDS_H_
