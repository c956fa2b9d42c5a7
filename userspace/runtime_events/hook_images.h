// Tells which images of a process have code that is hooked, beside its runtime.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_HOOK_IMAGES_H_
#define CLRSAMPLER_RUNTIME_EVENTS_HOOK_IMAGES_H_

#include <algorithm>

#include "absl/strings/match.h"
#include "process/mappings.h"
#include "process/process.h"

namespace clrsampler {

// nullptr: the process has no compiler, or it is part of its program.
inline const Mapping* FindJit(const Process& process) {
  for (const Mapping& mapping : process.mappings.all()) {
    if (mapping.kind == MappingKind::kFile && absl::EndsWith(mapping.path, "/libclrjit.so")) return &mapping;
  }
  return nullptr;
}

// A collector in a library of its own takes the place of the runtime's, whose probes are then never hit.
inline bool HasOwnCollector(const Process& process) {
  return std::ranges::any_of(process.mappings.all(), [](const Mapping& mapping) {
    return absl::EndsWith(mapping.path, "/libclrgc.so") || absl::EndsWith(mapping.path, "/libclrgcexp.so");
  });
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_HOOK_IMAGES_H_
