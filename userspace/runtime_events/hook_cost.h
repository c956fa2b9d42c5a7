// The cost of a hit of a probe for the thread that runs into it, in nanoseconds: a trap, and what comes beyond it.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_HOOK_COST_H_
#define CLRSAMPLER_RUNTIME_EVENTS_HOOK_COST_H_

#include <cstdint>

#include "runtime_events/hook_part.h"

namespace clrsampler {

// A trap, until one was measured.
inline constexpr uint64_t kUsualTrapNs = 600;

// Fewer hits in a whole run cost nothing that could be limited.
inline constexpr uint64_t kHitsThatMatter = 1'000;

// Beyond the trap, for hooks of any runtime.
uint64_t BeyondTrapNs(HookPart part);
// The same of exceptions, by the runtime's major version.
uint64_t BeyondExceptionNs(int major);

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_HOOK_COST_H_
