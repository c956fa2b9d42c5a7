// A profiler that a program is started with, in the place that takes one only: it has exceptions told, and ignores
// them. CORECLR_PROFILER={0D1C2B3A-0000-0000-0000-000000000001}
#include "inprocess/profiler_api.h"

namespace clrsampler {
namespace {

constexpr Guid kOtherClass = {0x0d1c2b3a, 0, 0, {0, 0, 0, 0, 0, 0, 0, 1}};
constexpr uint32_t kExceptions = 0x40;  // COR_PRF_MONITOR_EXCEPTIONS

Hresult Ignored(void*) { return kOk; }
uint32_t Count(void*) { return 1; }

Hresult Query(void* object, const Guid*, void** out) {
  *out = object;
  return kOk;
}

Hresult Initialize(void*, void* unknown) {
  void* info = nullptr;
  if (CallSlot(unknown, kQueryInterface, &kInfoInterface, &info) != kOk) return kFailed;
  return CallSlot(info, kSetEventMask2, kExceptions, uint32_t{0});
}

void* g_callbacks[kCallbackSlots];
void* g_profiler = g_callbacks;

Hresult CreateInstance(void*, void* /*outer*/, const Guid*, void** out) {
  for (void*& slot : g_callbacks) slot = reinterpret_cast<void*>(Ignored);
  g_callbacks[kQueryInterface] = reinterpret_cast<void*>(Query);
  g_callbacks[kAddRef] = g_callbacks[kRelease] = reinterpret_cast<void*>(Count);
  g_callbacks[kInitialize] = reinterpret_cast<void*>(Initialize);
  *out = &g_profiler;
  return kOk;
}

void* g_factory_slots[kFactorySlots] = {reinterpret_cast<void*>(Query), reinterpret_cast<void*>(Count),
                                        reinterpret_cast<void*>(Count), reinterpret_cast<void*>(CreateInstance),
                                        reinterpret_cast<void*>(Ignored)};
void* g_factory = g_factory_slots;

}  // namespace
}  // namespace clrsampler

extern "C" clrsampler::Hresult DllGetClassObject(const clrsampler::Guid* profiler, const clrsampler::Guid*,
                                                 void** out) {
  if (!(*profiler == clrsampler::kOtherClass)) return clrsampler::kClassNotAvailable;
  *out = &clrsampler::g_factory;
  return clrsampler::kOk;
}
