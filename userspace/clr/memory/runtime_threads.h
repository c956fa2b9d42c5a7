// The runtime's own list of its threads, as it is now.
#ifndef CLRSAMPLER_CLR_MEMORY_RUNTIME_THREADS_H_
#define CLRSAMPLER_CLR_MEMORY_RUNTIME_THREADS_H_

#include <cstdint>
#include <vector>

#include "clr/memory/memory_probe.h"
#include "clr/memory/runtime_memory.h"

namespace clrsampler {

struct RuntimeThread {
  uint64_t address = 0;     // of the Thread
  uint32_t managed_id = 0;  // Environment.CurrentManagedThreadId; 0: the runtime does not describe where it is (8)
  uint32_t os_id = 0;       // in the innermost pid namespace of the process
};

// Threads without an id of the kernel, which have not begun or have ended, are left out. A list that changes while it
// is read may be cut; the probe says so.
std::vector<RuntimeThread> ReadThreads(MemoryProbe& probe, const RuntimeMemory& runtime);

// Whether it still is the Thread of this id.
bool StillIs(MemoryProbe& probe, const RuntimeMemory& runtime, const RuntimeThread& thread);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_RUNTIME_THREADS_H_
