// The kinds of hooks. Each is planted, paid for and taken out by itself.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_HOOK_PART_H_
#define CLRSAMPLER_RUNTIME_EVENTS_HOOK_PART_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "clrsampler/wire.h"

namespace clrsampler {

enum class HookPart : uint8_t {
  kSuspensions = WIRE_PART_SUSPENSIONS,    // SuspendEE, RestartEE and collections
  kCompilations = WIRE_PART_COMPILATIONS,  // compileMethod
  kAllocations = WIRE_PART_ALLOCATIONS,    // where the collector reports allocated memory
  kExceptions = WIRE_PART_EXCEPTIONS,      // where the first pass of an exception begins
};
inline constexpr std::array kHookParts = {HookPart::kSuspensions, HookPart::kCompilations, HookPart::kAllocations,
                                          HookPart::kExceptions};
inline constexpr size_t IndexOf(HookPart part) { return static_cast<size_t>(part); }

// Their hits while they are there stand for the whole time (hook_coverage.h), and nothing is ever under way.
inline constexpr bool IsEstimated(HookPart part) {
  return part == HookPart::kAllocations || part == HookPart::kExceptions;
}

// As messages call what hooks of a part see.
inline absl::string_view WhatIsSeen(HookPart part) {
  switch (part) {
    case HookPart::kSuspensions:
      return "pauses";
    case HookPart::kCompilations:
      return "compilations";
    case HookPart::kAllocations:
      return "allocations";
    case HookPart::kExceptions:
      return "exceptions";
  }
  return "";
}

inline HookPart PartOf(uint32_t wire_hook) {
  switch (wire_hook) {
    case WIRE_HOOK_COMPILE:
    case WIRE_HOOK_COMPILED:
      return HookPart::kCompilations;
    case WIRE_HOOK_ALLOCATED:
      return HookPart::kAllocations;
    case WIRE_HOOK_THROWN:
      return HookPart::kExceptions;
    default:
      return HookPart::kSuspensions;
  }
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_HOOK_PART_H_
