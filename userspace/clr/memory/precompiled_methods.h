// Methods of ready-to-run images, as the runtime's memory tells them: the function that holds an address, and the
// method that the runtime has prepared there. For images whose file can't be read.
#ifndef CLRSAMPLER_CLR_MEMORY_PRECOMPILED_METHODS_H_
#define CLRSAMPLER_CLR_MEMORY_PRECOMPILED_METHODS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "clr/memory/code_ranges.h"
#include "clr/memory/memory_probe.h"
#include "clr/memory/runtime_layout.h"
#include "status/thread_checker.h"

namespace clrsampler {

// One process. Main loop only. Borrows what it is given.
class PrecompiledMethods {
 public:
  PrecompiledMethods(const RuntimeLayout& layout, MemoryReader& memory);
  ~PrecompiledMethods();

  struct Function {
    AddressRange range;
    uint64_t method_desc = 0;
  };
  // Only methods that begin exactly where the function does: walking back over functions that the runtime has not
  // prepared would give funclets, and methods that never ran, the name of a neighbour. nullopt: there is none, or
  // `probe` has failed.
  std::optional<Function> Find(MemoryProbe& probe, const CodeSection& section, uint64_t address);

  // Entry points of methods that the runtime has prepared, with their MethodDescs. Where they can't be read there are
  // none, and `failed` says why: it takes the failure, and its own budget does not count. So it is where one lies
  // outside of the section.
  struct Prepared {
    uint64_t entry_point;
    uint64_t method_desc;
  };
  std::vector<Prepared> PreparedIn(const CodeSection& section, MemoryProbe& failed) const;

 private:
  struct Image;

  std::unique_ptr<Image> ReadImage(MemoryProbe& probe, const CodeSection& section);
  std::optional<uint64_t> MethodAt(MemoryProbe& probe, Image& image, const CodeSection& section, uint64_t start) const;
  // Tells `visit` what the runtime's map holds, which can be anything. Some of it may have been told before a failure.
  void ForEachPrepared(const CodeSection& section, MemoryProbe& failed, absl::FunctionRef<void(Prepared)> visit) const;

  const RuntimeLayout& layout_;
  MemoryReader& memory_;
  uint32_t functions_ = 0;                                        // in all images
  absl::flat_hash_map<uint64_t, std::unique_ptr<Image>> images_;  // by Module
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_PRECOMPILED_METHODS_H_
