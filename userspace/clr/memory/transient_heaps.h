// Where one process keeps code that can be freed (dynamic methods, collectible assemblies), as the sampler was told:
// only there does it take notes of its own (wire_code_snapshot).
#ifndef CLRSAMPLER_CLR_MEMORY_TRANSIENT_HEAPS_H_
#define CLRSAMPLER_CLR_MEMORY_TRANSIENT_HEAPS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "clr/memory/runtime_memory.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "process/mappings.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only.
class TransientHeaps {
 public:
  // The heaps are in order.
  using Publish = std::function<void(const wire_transient_code&, std::span<const wire_transient_heap>)>;

  // To be called often. It looks for heaps when mappings have changed since the last time, and less and less often
  // while there is nothing new. It looks at once when memory for code begins where none began before, or when Met asks
  // for it. Where the heaps begin that it tells of for the first time.
  std::vector<uint64_t> Poll(RuntimeMemory& runtime, const MappingTable& mappings, MonotonicTime now,
                             const Publish& publish);
  // A sample met code that can be freed; it may lie in a heap that was not told of.
  void NoteAddress(uint64_t address) { missed_ |= HeapAt(address) == nullptr; }
  // A method was compiled just now: its heap is told of at once if it can be freed and is a new one. True: it is.
  bool Compiled(RuntimeMemory& runtime, uint64_t entry, const Publish& publish);

 private:
  // The heap among those that the sampler was told of; nullptr: none holds the address.
  const wire_transient_heap* HeapAt(uint64_t address) const;
  bool NoteBeginnings(const MappingTable& mappings, uint64_t seen);
  // True: they are others than the last time.
  bool PublishHeaps(const RuntimeLayout& layout, std::vector<wire_transient_heap> heaps, const Publish& publish);

  static constexpr size_t kMaxBeginnings = 1 << 18;

  wire_transient_code code_{};
  std::vector<wire_transient_heap> heaps_;    // in order
  absl::flat_hash_set<uint64_t> beginnings_;  // of mappings for code
  uint64_t seen_mappings_ = 0;                // generation
  bool mappings_changed_ = false;             // since heaps were looked for
  bool missed_ = false;
  uint64_t pause_ns_ = 0;  // to the next look
  MonotonicTime next_look_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_TRANSIENT_HEAPS_H_
