// Names of methods and types, from the metadata that the runtime has loaded. For the library inside the target.
//
// Callable from every notification that may ask the runtime: not while it is suspended.
#ifndef CLRSAMPLER_INPROCESS_NAMES_H_
#define CLRSAMPLER_INPROCESS_NAMES_H_

#include <cstddef>
#include <cstdint>

#include "inprocess/profiler_api.h"
#include "inprocess/ring_writer.h"

namespace clrsampler {

// A text on the stack; what does not fit is cut off.
class NameBuffer {
 public:
  void Append(const char16_t* units, size_t count);
  void Append(const char* ascii);
  InprocessText text() const { return {units_, count_}; }

 private:
  char16_t units_[kMaxInprocessTextUnits];
  uint16_t count_ = 0;
};

struct FunctionName {
  NameBuffer type;  // empty for a method that was made at run time
  NameBuffer method;
  RuntimeId module = 0;
  MetadataToken token = 0;
};

// `info` is an ICorProfilerInfo12. A part that can't be found out stays empty.
void NameFunction(void* info, RuntimeId function, FunctionName& name);
void NameDynamicFunction(void* info, RuntimeId function, FunctionName& name);
// The file of a module; of one that is too long for a record the end, behind U+2026.
void NameModule(void* info, RuntimeId module, NameBuffer& path, RuntimeId& assembly);
// "System.Collections.Generic.List`1", "Shop.Order+Line", "System.Byte[,][]"
void NameClass(void* info, RuntimeId type, NameBuffer& name);

}  // namespace clrsampler

#endif  // CLRSAMPLER_INPROCESS_NAMES_H_
