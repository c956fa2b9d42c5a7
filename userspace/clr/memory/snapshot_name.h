// The name of a dynamic method, as the sampler copied it.
#ifndef CLRSAMPLER_CLR_MEMORY_SNAPSHOT_NAME_H_
#define CLRSAMPLER_CLR_MEMORY_SNAPSHOT_NAME_H_

#include <cstring>
#include <string>

#include "absl/strings/match.h"
#include "clr/memory/runtime_memory.h"
#include "clr/memory/runtime_types.h"
#include "clrsampler/wire.h"
#include "formats/names/tier.h"

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

// The method of that name.
inline ManagedCode DynamicMethodNamed(const std::string& name) {
  ManagedCode method;
  method.kind = ManagedCode::Kind::kMethod;
  method.name.kind = absl::StartsWith(name, "IL_STUB") ? MethodKind::kIlStub : MethodKind::kDynamicMethod;
  method.name.type = "dynamicClass";
  method.name.method = name;
  method.name.tier = std::string(tier::kOptimized);
  return method;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_SNAPSHOT_NAME_H_
