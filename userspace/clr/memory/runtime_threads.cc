#include "clr/memory/runtime_threads.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxThreads = 1 << 16;
// A thread that has not begun, or has ended, has another number.
constexpr uint64_t kMaxOsId = 1 << 22;  // PID_MAX_LIMIT

}  // namespace

std::vector<RuntimeThread> ReadThreads(MemoryProbe& probe, const RuntimeMemory& runtime) {
  const RuntimeLayout& layout = runtime.layout();
  const RuntimeLayout::ThreadList& at = layout.thread_list;
  std::vector<RuntimeThread> threads;
  if (!at.known || runtime.variables().thread_store == 0) return threads;
  uint64_t link = probe.Pointer(probe.Pointer(runtime.variables().thread_store) + at.first);
  for (size_t i = 0; link != 0 && probe.ok() && i < kMaxThreads; ++i) {
    RuntimeThread thread;
    thread.address = at.leads_to_threads ? link : link - at.next;
    const uint64_t os_id = probe.Pointer(thread.address + at.os_id);
    if (layout.major > 8) thread.managed_id = probe.Value<uint32_t>(thread.address + at.managed_id);
    link = probe.Pointer(thread.address + at.next);
    if (!probe.ok() || os_id == 0 || os_id > kMaxOsId) continue;
    thread.os_id = static_cast<uint32_t>(os_id);
    threads.push_back(thread);
  }
  return threads;
}

bool StillIs(MemoryProbe& probe, const RuntimeMemory& runtime, const RuntimeThread& thread) {
  return probe.Pointer(thread.address + runtime.layout().thread_list.os_id) == thread.os_id && probe.ok();
}

}  // namespace clrsampler
