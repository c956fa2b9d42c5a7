// The name of a dynamic method, as the sampler copied it.
#ifndef CLRSAMPLER_CLR_MEMORY_SNAPSHOT_NAME_H_
#define CLRSAMPLER_CLR_MEMORY_SNAPSHOT_NAME_H_

#include <cstring>
#include <string>

#include "clr/memory/runtime_types.h"
#include "clrsampler/wire.h"

namespace clrsampler {

// Whether the method's name may be longer than the sampler's copy.
inline bool IsNameCut(const wire_code_snapshot& snapshot) {
  return strnlen(snapshot.name, sizeof snapshot.name) >= sizeof snapshot.name - 1;
}

// The name that the sampler copied; empty: none, or no text. The copy ends after 63 bytes, perhaps inside a character.
inline std::string NameOf(const wire_code_snapshot& snapshot) {
  std::string name(snapshot.name, strnlen(snapshot.name, sizeof snapshot.name));
  constexpr size_t kCut = sizeof snapshot.name - 1;
  for (int i = 0; i < 3 && name.size() >= kCut - 3 && !name.empty() && !IsMethodName(name); ++i) name.pop_back();
  return IsMethodName(name) ? name : "";
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_SNAPSHOT_NAME_H_
