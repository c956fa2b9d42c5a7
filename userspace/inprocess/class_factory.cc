// The two functions that a runtime looks up in a profiler's library.
#include "inprocess/callbacks.h"
#include "inprocess/profiler_api.h"

namespace clrsampler {
namespace {

Hresult QueryFactory(void* object, const Guid* wanted, void** out) {
  return QueryStatic(static_cast<TableObject*>(object), &kClassFactoryInterface, 1, wanted, out);
}

uint32_t FactoryCount(void*) { return 1; }

Hresult CreateInstance(void*, void* outer, const Guid* wanted, void** out) {
  *out = nullptr;
  if (outer != nullptr) return kNoAggregation;
  TableObject* profiler = ProfilerObject();
  return CallSlot(profiler, kQueryInterface, wanted, out);
}

Hresult LockServer(void*, int32_t /*lock*/) { return kOk; }

}  // namespace
}  // namespace clrsampler

extern "C" [[gnu::visibility("default")]] clrsampler::Hresult DllGetClassObject(const clrsampler::Guid* profiler,
                                                                                const clrsampler::Guid* wanted,
                                                                                void** out) {
  using namespace clrsampler;  // NOLINT(google-build-using-namespace): of this project
  static void* table[kFactorySlots] = {reinterpret_cast<void*>(QueryFactory), reinterpret_cast<void*>(FactoryCount),
                                       reinterpret_cast<void*>(FactoryCount), reinterpret_cast<void*>(CreateInstance),
                                       reinterpret_cast<void*>(LockServer)};
  static TableObject factory{table};
  *out = nullptr;
  if (!(*profiler == kProfilerClass)) return kClassNotAvailable;
  return CallSlot(&factory, kQueryInterface, wanted, out);
}

// The runtime itself decides when.
extern "C" [[gnu::visibility("default")]] clrsampler::Hresult DllCanUnloadNow() { return clrsampler::kOk; }
