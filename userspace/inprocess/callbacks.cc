#include "inprocess/callbacks.h"

#include <cstdlib>
#include <cstring>

#include "inprocess/il_maps.h"
#include "inprocess/notifications.h"
#include "inprocess/session.h"

namespace clrsampler {
namespace {

// The address of the agent, for a program that is started with the library.
constexpr char kSocketVariable[] = "CLRSAMPLER_LIBRARY_SOCKET";

// The callbacks that nobody listens to. The calling conventions of x86-64 and arm64 allow a function that takes fewer
// arguments than it is given: the caller owns the place of the arguments.
Hresult Ignored(void*) { return kOk; }

Hresult Query(void* object, const Guid* wanted, void** out) {
  constexpr size_t kCount = sizeof kCallbackInterfaces / sizeof *kCallbackInterfaces;
  return QueryStatic(static_cast<TableObject*>(object), kCallbackInterfaces, kCount, wanted, out);
}

// It lives as long as the library, so nothing counts.
uint32_t Count(void*) { return 1; }

// Ends the activation without an error where no agent listens: the program then runs as if the library was not there.
Hresult Initialize(void*, void* unknown) {
  const char* path = std::getenv(kSocketVariable);
  if (path == nullptr) return kCancelActivation;
  return TheSession().Begin(unknown, path, std::strlen(path), /*at_start=*/true) == kOk ? kOk : kCancelActivation;
}

Hresult InitializeForAttach(void*, void* unknown, const void* data, uint32_t bytes) {
  if (data == nullptr) return kFailed;
  return TheSession().Begin(unknown, static_cast<const char*>(data), bytes, /*at_start=*/false);
}

Hresult ProfilerAttachComplete(void*) {
  SendAllILMaps(TheSession());
  TheSession().EndAttach();
  return kOk;
}

Hresult ProfilerDetachSucceeded(void*) {
  TheSession().End();
  return kOk;
}

// Mapped memory goes with the process.
Hresult Shutdown(void*) {
  TheSession().Shut();
  return kOk;
}

// Beside another profiler, or alone: this one changes nothing.
Hresult LoadAsNotificationOnly(void*, int32_t* only) {
  *only = 1;
  return kOk;
}

struct Profiler {
  Profiler() {
    for (void*& slot : table) slot = reinterpret_cast<void*>(Ignored);
    table[kQueryInterface] = reinterpret_cast<void*>(Query);
    table[kAddRef] = table[kRelease] = reinterpret_cast<void*>(Count);
    table[kInitialize] = reinterpret_cast<void*>(Initialize);
    table[kInitializeForAttach] = reinterpret_cast<void*>(InitializeForAttach);
    table[kProfilerAttachComplete] = reinterpret_cast<void*>(ProfilerAttachComplete);
    table[kProfilerDetachSucceeded] = reinterpret_cast<void*>(ProfilerDetachSucceeded);
    table[kShutdown] = reinterpret_cast<void*>(Shutdown);
    table[kLoadAsNotificationOnly] = reinterpret_cast<void*>(LoadAsNotificationOnly);
    FillNotifications(table);
  }
  void* table[kCallbackSlots];
  TableObject object{table};
};

}  // namespace

Hresult QueryStatic(TableObject* object, const Guid* ids, size_t count, const Guid* wanted, void** out) {
  bool known = *wanted == kUnknownInterface;
  for (size_t i = 0; i < count && !known; ++i) known = ids[i] == *wanted;
  *out = known ? object : nullptr;
  return known ? kOk : kNoInterface;
}

TableObject* ProfilerObject() {
  static Profiler profiler;  // the library is compiled without thread-safe statics; a runtime loads it on one thread
  return &profiler.object;
}

}  // namespace clrsampler
