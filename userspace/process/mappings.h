// The executable mappings of one process, as of the event that is being handled.
#ifndef CLRSAMPLER_PROCESS_MAPPINGS_H_
#define CLRSAMPLER_PROCESS_MAPPINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clrsampler {

enum class MappingKind : uint8_t {
  kFile,       // an image: ELF, PE, or a single-file host that carries both
  kJitMemory,  // anonymous or memfd memory: JIT code, stubs, images that were copied. W^X heaps of .NET 7 and newer are
               // "/memfd:doublemapper (deleted)"
  kVdso,
  kOther,  // [uprobes], [vsyscall], device memory
};

struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;          // exclusive
  uint64_t file_offset = 0;  // bytes; meaningless for kJitMemory
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  MappingKind kind = MappingKind::kOther;
  std::string path;  // as the kernel prints it, in the mount namespace of the target; may end in " (deleted)"
};

// What kind a mapping with this name is.
MappingKind ClassifyMapping(absl::string_view path, uint64_t inode);

// Sorted and free of overlaps. Only on the main loop.
class MappingTable {
 public:
  // A new mapping replaces what it overlaps, as mmap does; the rest of a cut mapping stays, with its offset moved on.
  void Insert(Mapping mapping);
  void Clear();

  const Mapping* Find(uint64_t address) const;  // nullptr: no executable mapping that we know of
  const std::vector<Mapping>& all() const { return mappings_; }
  uint64_t generation() const { return generation_; }  // grows with every change

 private:
  std::vector<Mapping> mappings_;
  uint64_t generation_ = 1;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_MAPPINGS_H_
