// Code of a runtime that its own tables of code ranges leave out: copies of write barriers (write_barriers.h), and
// stubs in heaps without a range (stub_code.h). Both are known by their instructions alone.
#ifndef CLRSAMPLER_CLR_MEMORY_UNLISTED_CODE_H_
#define CLRSAMPLER_CLR_MEMORY_UNLISTED_CODE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "clr/memory/code_ranges.h"
#include "clr/memory/runtime_memory.h"
#include "clr/memory/write_barriers.h"
#include "process/image_files.h"
#include "process/mappings.h"
#include "process/target_memory.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only.
class UnlistedCode {
 public:
  struct Found {
    AddressRange range;
    absl::string_view kind;  // text that lives as long as the program
    bool permanent = false;  // is never freed
  };

  explicit UnlistedCode(ImageFiles& images) : images_(images) {}

  // Finds what holds `address`, by reading the memory around it as far as `mapping` goes. The runtime's image is in
  // `image`; `build` tells it from others. nullopt: nothing that is known, or it can't be read.
  std::optional<Found> Find(const Process& process, const Mapping& image, const std::string& build,
                            RuntimeMemory& runtime, const Mapping& mapping, uint64_t address);

 private:
  // nullptr: its image can't be read now.
  const WriteBarriers* BarriersOf(const Process& process, const Mapping& image, const std::string& build);

  ImageFiles& images_;
  absl::flat_hash_map<std::string, std::unique_ptr<const WriteBarriers>> barriers_;  // by build
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_UNLISTED_CODE_H_
