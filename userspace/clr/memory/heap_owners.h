// Since when a code heap has been known to hold code of collectible assemblies of one LoaderAllocator.
//
// The runtime frees nothing of such a heap before its LoaderAllocator dies, and then all of it. So what is found in it
// with the same owner as before has been there, or has been nothing, all the time between.
#ifndef CLRSAMPLER_CLR_MEMORY_HEAP_OWNERS_H_
#define CLRSAMPLER_CLR_MEMORY_HEAP_OWNERS_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "clr/memory/code_ranges.h"
#include "os/clock.h"
#include "status/thread_checker.h"

namespace clrsampler {

// One process. Main loop only.
class HeapOwners {
 public:
  // A method of an assembly was found in a heap of this owner, by a reading that ended at `time`. `time`, or when that
  // was first so.
  MonotonicTime Since(const HeapOwner& owner, MonotonicTime time) {
    main_loop_.Check();
    if (owner.number == 0) return time;
    if (known_.size() >= kMaxHeaps) known_.clear();
    Known& known = known_.try_emplace(owner.heap.begin, Known{owner, time}).first->second;
    if (known.owner.number != owner.number || known.owner.heap.end != owner.heap.end) known = {owner, time};
    return known.since;
  }

 private:
  static constexpr size_t kMaxHeaps = 4096;

  struct Known {
    HeapOwner owner;
    MonotonicTime since;
  };
  absl::flat_hash_map<uint64_t, Known> known_;  // by begin of the heap
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_HEAP_OWNERS_H_
