#include "clr/memory/allocated_bytes.h"

#include <array>
#include <cstddef>

#include "clr/memory/memory_probe.h"
#include "clr/memory/runtime_threads.h"

namespace clrsampler {
namespace {

constexpr int kMaxCountedThreads = 4096;
constexpr int kReadsOfThread = 7;  // three to find it, three for its count, and whether it is still there
constexpr int kTriesOfList = 2;

}  // namespace

std::optional<absl::flat_hash_map<uint64_t, uint64_t>> ReadAllocatedBytes(RuntimeMemory& runtime) {
  const RuntimeLayout::ThreadList& at = runtime.layout().thread_list;
  MemoryProbe probe(runtime.memory(), kMaxCountedThreads * kReadsOfThread + kTriesOfList);
  absl::flat_hash_map<uint64_t, uint64_t> bytes;
  for (const RuntimeThread& thread : ReadThreads(probe, runtime)) {
    if (bytes.size() == kMaxCountedThreads) return std::nullopt;
    const uint64_t holder = at.locals ? probe.Pointer(thread.address + *at.locals) : thread.address;
    if (holder == 0) continue;  // it has allocated nothing, or has ended
    const uint64_t context = holder + at.allocation_context;
    const uint64_t count = probe.Pointer(context + at.allocated) + probe.Pointer(context + at.allocated_others);
    if (StillIs(probe, runtime, thread)) bytes[thread.os_id] = count;
  }
  if (!probe.ok() || bytes.empty()) return std::nullopt;
  return bytes;
}

}  // namespace clrsampler
