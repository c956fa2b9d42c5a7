// The differences between the major versions of .NET, a row each: the place where a new version is entered.
//
// Two kinds of fact have a table of their own beside this one, because they are many: where fields are
// (clr/memory/runtime_layout.cc) and the JIT's helpers (formats/runtime/jit_helper_tables.cc). Versions of precompiled
// images are those of a format: formats/pe/r2r_image.h. Defects of single releases: clr/runtime_facts.cc.
#ifndef CLRSAMPLER_CLR_RUNTIME_GENERATIONS_H_
#define CLRSAMPLER_CLR_RUNTIME_GENERATIONS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

#include "absl/strings/string_view.h"
#include "formats/runtime/il_map_decoder.h"

namespace clrsampler {

// How much of its structures a runtime describes itself (formats/runtime/contract_descriptor.h).
enum class DescribedLayout : uint8_t {
  kNot,
  kSometimes,  // in part, where it exports a descriptor at all
  kInPart,     // what it leaves out is as in the table
  kWhole,      // every field that is read; one that does not is another runtime
};

struct RuntimeGeneration {
  uint16_t major;
  // The value of getVersionIdentifier of its JIT: src/coreclr/inc/jiteeversionguid.h of each release branch, read in
  // the runtimes 8.0.0 to 11.0.0.
  absl::string_view jit_interface;
  DescribedLayout described;
  // Names of stubs by StubCodeBlockKind (src/coreclr/vm/codeman.h), which no contract describes. nullptr: not known.
  std::span<const char* const> stub_kinds;
  // Whether it collects the lines of a perf map and writes 4 KiB at a time. Else each line has a write of its own,
  // before the method runs. Measured with strace on 10.0.15 and 11.0.0.
  bool perf_map_in_blocks;
  DebugInfoFormat debug_info;  // of compiled methods
};

namespace stub_kinds {
// src/coreclr/vm/codeman.h of .NET 8 to 10.
inline constexpr const char* kBefore11[] = {nullptr,
                                            "JumpStub",
                                            "Precode",
                                            "DynamicHelper",
                                            "StubPrecode",
                                            "FixupPrecode",
                                            "VSD_DispatchStub",
                                            "VSD_ResolveStub",
                                            "VSD_LookupStub",
                                            "VSD_VTableStub",
                                            nullptr,
                                            nullptr,
                                            nullptr,
                                            nullptr,
                                            "MethodCallThunk",
                                            "Stub"};
// Measured on 11.0.0 against its perf map, which has a line for each block of stubs: StubPrecode (3) is "Unknown"
// there, DynamicHelper (2) and FixupPrecode (4) are both "MethodCallThunk", as on 10; their instructions tell them
// apart. "Stub" (10) are those that a linker of instructions writes (stub_code.h).
inline constexpr const char* kSince11[] = {nullptr,
                                           "JumpStub",
                                           "DynamicHelper",
                                           "StubPrecode",
                                           "FixupPrecode",
                                           "VSD_DispatchStub",
                                           "VSD_ResolveStub",
                                           "VSD_LookupStub",
                                           "VSD_VTableStub",
                                           "CallCountingStub",
                                           "Stub",
                                           "DelegateShuffleThunk",
                                           nullptr,
                                           nullptr,
                                           nullptr,
                                           "Stub"};
}  // namespace stub_kinds

// By version, without a gap.
inline constexpr RuntimeGeneration kRuntimeGenerations[] = {
    {8, "4bceb905-d550-4a5d-b1eb-276fff68d183", DescribedLayout::kNot, stub_kinds::kBefore11, false,
     DebugInfoFormat::kNet8},
    {9, "d6218a78-9a34-4c6f-8db5-077a06022fae", DescribedLayout::kSometimes, stub_kinds::kBefore11, false,
     DebugInfoFormat::kNet8},
    {10, "7a8cbc56-9e19-4321-80b9-a0d2c578c945", DescribedLayout::kInPart, stub_kinds::kBefore11, false,
     DebugInfoFormat::kNet10},
    {11, "0d18a7df-af1f-4481-a72f-aa6cf8aa0a65", DescribedLayout::kWhole, stub_kinds::kSince11, true,
     DebugInfoFormat::kNet11},
};

inline constexpr uint16_t kOldestKnownMajor = kRuntimeGenerations[0].major;
inline constexpr uint16_t kNewestKnownMajor = std::rbegin(kRuntimeGenerations)->major;
static_assert(std::size(kRuntimeGenerations) == kNewestKnownMajor - kOldestKnownMajor + 1);

// nullptr: nothing is known of this version.
constexpr const RuntimeGeneration* RuntimeGenerationOf(uint32_t major) {
  const auto* found = std::ranges::find(kRuntimeGenerations, major, &RuntimeGeneration::major);
  return found == std::end(kRuntimeGenerations) ? nullptr : found;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_RUNTIME_GENERATIONS_H_
