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

// The part that stays of a text that is too long. U+2026 is where it was cut.
enum class Keep : uint8_t { kBegin, kEnd, kBoth };

// A text on the stack. Its end is U+2026 if more came than fits.
class NameBuffer {
 public:
  void Append(const char16_t* units, size_t count);
  void Append(const char* ascii);
  // A text that is cut where it is too long for an empty buffer.
  void AppendCut(const char16_t* units, size_t count, Keep keep);
  bool empty() const { return count_ == 0; }
  InprocessText text() const { return {units_, count_}; }

 private:
  void MarkCut();

  char16_t units_[kMaxInprocessTextUnits];
  uint16_t count_ = 0;
};

struct FunctionName {
  NameBuffer type;  // empty for a method that was made at run time
  NameBuffer method;
  RuntimeId module = 0;
  MetadataToken token = 0;
};

// `info` is an ICorProfilerInfo12. A part that can't be found out stays empty, and a cut one has U+2026. Types keep
// their beginning, and methods both ends: the name of an explicit implementation has the method itself at its end.
void NameFunction(void* info, RuntimeId function, FunctionName& name);
void NameDynamicFunction(void* info, RuntimeId function, FunctionName& name);
// The file of a module; of one that is too long for a record the end, behind U+2026.
void NameModule(void* info, RuntimeId module, NameBuffer& path, RuntimeId& assembly);
void NameAssembly(void* info, RuntimeId assembly, NameBuffer& name);
// "System.Collections.Generic.List`1", "Shop.Order+Line", "System.Byte[,][]". In a very deep nest U+2026 stands for the
// outer types.
void NameClass(void* info, RuntimeId type, NameBuffer& name);

}  // namespace clrsampler

#endif  // CLRSAMPLER_INPROCESS_NAMES_H_
