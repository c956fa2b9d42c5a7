// How much each thread of a process has allocated so far, as the runtime itself counts it: in the thread's allocation
// context, gc_alloc_context (dotnet/runtime src/coreclr/gc/gcinterface.h).
//
// The collector adds to it what it gives to the thread, some KB at a time. It adds the same to what it reports each
// 100 KB of, so both are one measure. The count is gone with the thread.
#ifndef CLRSAMPLER_CLR_MEMORY_ALLOCATED_BYTES_H_
#define CLRSAMPLER_CLR_MEMORY_ALLOCATED_BYTES_H_

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "clr/memory/runtime_memory.h"

namespace clrsampler {

// Bytes by the kernel's id of the thread, of all threads that run. (A Thread's place is soon another's when it is
// gone.) nullopt: they could not be read, or there are more than 4,096 threads. Main loop only.
std::optional<absl::flat_hash_map<uint64_t, uint64_t>> ReadAllocatedBytes(RuntimeMemory& runtime);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_ALLOCATED_BYTES_H_
