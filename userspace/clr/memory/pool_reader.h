// The thread pool of a process, as the fields of its own classes tell it now: PortableThreadPool, and the queues of
// ThreadPoolWorkQueue. The native pool of Windows is not read.
#ifndef CLRSAMPLER_CLR_MEMORY_POOL_READER_H_
#define CLRSAMPLER_CLR_MEMORY_POOL_READER_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "clr/memory/corelib_fields.h"
#include "clr/memory/memory_probe.h"
#include "clr/memory/runtime_memory.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct PoolState {
  uint32_t min_workers = 0, max_workers = 0;
  uint32_t workers = 0;            // threads that there are
  uint32_t working = 0;            // of these: with a work item, or looking for one; the others are idle
  uint32_t wanted = 0;             // how many the pool lets work at a time, for now
  std::optional<uint64_t> queued;  // work items that nobody has begun; nullopt: they could not be counted

  // The pool adds no worker any more.
  bool is_full() const { return workers >= max_workers; }
  // No other worker may begin what is queued. Idle workers above `wanted` get no work; they end after 20 s.
  bool leaves_work_lying() const { return queued.value_or(0) > 0 && working >= std::min(workers, wanted); }
};

// One process. Main loop only. Borrows the runtime.
class PoolReader {
 public:
  explicit PoolReader(RuntimeMemory& runtime) : runtime_(runtime), fields_(runtime) {}

  // nullopt: the program has not used its pool yet, or the pool could not be read. The numbers change while they are
  // read, each by itself.
  std::optional<PoolState> Read();

 private:
  std::optional<uint64_t> Queued();
  // Items in the ConcurrentQueue that a field of an object refers to; nullopt with a failed probe.
  uint64_t ItemsIn(MemoryProbe& probe, uint64_t queue);
  uint64_t ItemsOfWorkers(MemoryProbe& probe);
  uint64_t ObjectIn(MemoryProbe& probe, uint64_t object, absl::string_view field);
  // The place of an instance's field that the class must have.
  uint32_t Place(MemoryProbe& probe, uint64_t method_table, absl::string_view field);

  RuntimeMemory& runtime_;
  CoreLibFields fields_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_POOL_READER_H_
