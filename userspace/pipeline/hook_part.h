// The two kinds of hooks. Each is planted, paid for and taken out by itself.
#ifndef CLRSAMPLER_PIPELINE_HOOK_PART_H_
#define CLRSAMPLER_PIPELINE_HOOK_PART_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "clrsampler/wire.h"

namespace clrsampler {

enum class HookPart : uint8_t {
  kSuspensions,   // SuspendEE, RestartEE and collections
  kCompilations,  // compileMethod
};
inline constexpr std::array<HookPart, 2> kHookParts = {HookPart::kSuspensions, HookPart::kCompilations};
inline constexpr size_t IndexOf(HookPart part) { return static_cast<size_t>(part); }

inline HookPart PartOf(uint32_t wire_hook) {
  return wire_hook == WIRE_HOOK_COMPILE || wire_hook == WIRE_HOOK_COMPILED ? HookPart::kCompilations
                                                                           : HookPart::kSuspensions;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_HOOK_PART_H_
