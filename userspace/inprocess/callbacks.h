// The object that the runtime calls: the table of ICorProfilerCallback11, and the factory that hands it out.
#ifndef CLRSAMPLER_INPROCESS_CALLBACKS_H_
#define CLRSAMPLER_INPROCESS_CALLBACKS_H_

#include "inprocess/profiler_api.h"

namespace clrsampler {

// An object of a binary interface: a pointer to its table, and nothing else.
struct TableObject {
  void* const* table;
};

// The one profiler of this library, with kCallbackSlots slots. Its notifications come from any thread.
TableObject* ProfilerObject();

// Answers for an object with the interfaces `ids`: itself, or kNoInterface. It lives as long as the library.
Hresult QueryStatic(TableObject* object, const Guid* ids, size_t count, const Guid* wanted, void** out);

}  // namespace clrsampler

#endif  // CLRSAMPLER_INPROCESS_CALLBACKS_H_
