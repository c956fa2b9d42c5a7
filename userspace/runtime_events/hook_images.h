// Tells which image of a process has the compiler's code, beside its runtime.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_HOOK_IMAGES_H_
#define CLRSAMPLER_RUNTIME_EVENTS_HOOK_IMAGES_H_

#include "formats/proc/maps_text.h"
#include "os/path_text.h"
#include "process/mappings.h"
#include "process/process.h"

namespace clrsampler {

// nullptr: the process has no compiler, or it is part of its program. The file may have been replaced since it was
// mapped, as an update of the runtime does.
inline const Mapping* FindJit(const Process& process) {
  for (const Mapping& mapping : process.mappings.all()) {
    if (mapping.kind != MappingKind::kFile) continue;
    if (FileNameOf(WithoutDeletedMark(mapping.path)) == "libclrjit.so") return &mapping;
  }
  return nullptr;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_HOOK_IMAGES_H_
