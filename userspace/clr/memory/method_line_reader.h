// From a compiled method in a process's memory to its lines.
#ifndef CLRSAMPLER_CLR_MEMORY_METHOD_LINE_READER_H_
#define CLRSAMPLER_CLR_MEMORY_METHOD_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "clr/lines/assembly_pdbs.h"
#include "clr/lines/method_lines.h"
#include "clr/memory/runtime_memory.h"
#include "process/process.h"
#include "status/thread_checker.h"

namespace clrsampler {

// One process. Main loop only.
class MethodLineReader {
 public:
  // nullptr: nobody wants lines. Borrowed.
  explicit MethodLineReader(AssemblyPdbs* pdbs) : pdbs_(pdbs) {}

  // Reads now: the method's map is gone with it, and the PDB may be with the process. That holds for a PDB too that a
  // symbol server may still send. `found` is what `runtime` has just found. nullptr: the method has no lines.
  std::shared_ptr<const MethodLines> LinesOf(const Process& process, RuntimeMemory& runtime, const ManagedCode& found);

  uint64_t maps_read() const { return maps_read_; }
  uint64_t maps_failed() const { return maps_failed_; }  // not there any more, or damaged

 private:
  static constexpr size_t kMaxAssemblies = 4096;

  std::shared_ptr<AssemblySlot> AssemblyOf(const Process& process, MemoryReader& memory, const RuntimeModule& module);

  AssemblyPdbs* const pdbs_;
  // By metadata, and what holds it: modules that may be freed are read again and again, and share it.
  absl::flat_hash_map<std::pair<std::shared_ptr<const void>, const std::byte*>, std::shared_ptr<AssemblySlot>>
      assemblies_;
  uint64_t maps_read_ = 0;
  uint64_t maps_failed_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_METHOD_LINE_READER_H_
