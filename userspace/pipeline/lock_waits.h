// Waits for locks of the threads of a process: puts the end of each, which says how long it took, together with the
// stack of its beginning. Runtimes send no stack with the end.
//
// Threads: one. Memory: a stack for each thread that waits, at most kMaxWaiting.
#ifndef CLRSAMPLER_PIPELINE_LOCK_WAITS_H_
#define CLRSAMPLER_PIPELINE_LOCK_WAITS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "os/clock.h"
#include "symbols/frame.h"

namespace clrsampler {

class LockWaits {
 public:
  static constexpr size_t kMaxWaiting = 1 << 16;
  // By how much the time of the first event may differ from where the wait began by the word of the second one: the
  // thread may lose its CPU between. More is another wait, of which an event was lost.
  static constexpr uint64_t kToleranceNs = 10'000'000;

  // In the order of the times. `frames`: outermost first.
  void Began(uint64_t tid, MonotonicTime time, std::span<const FrameId> frames);
  // The stack of its beginning; empty: it is not known.
  std::vector<FrameId> Ended(uint64_t tid, MonotonicTime time, uint64_t duration_ns);

 private:
  struct Waiting {
    MonotonicTime since;
    std::vector<FrameId> frames;
  };
  absl::flat_hash_map<uint64_t, Waiting> waiting_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_LOCK_WAITS_H_
