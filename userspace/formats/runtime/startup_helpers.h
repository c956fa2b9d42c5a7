// Finds in a runtime's code the helpers that it chooses when it starts.
//
// The table of dynamic JIT helpers (formats/runtime/jit_helper_tables.h) has one function that changes it:
// SetJitHelperFunction(place, function). Its callers pass constants: which place, and which function. Those that set
// the allocators (InitJITHelpers1) also choose the one of strings (dotnet/runtime: src/coreclr/vm/jitinterfacegen.cpp,
// at 0a1ad13b). Measured on 8.0.30, 9.0.19, 10.0.14 and 11.0.0, and on arm64
// (formats/runtime/startup_helpers_arm64.h).
#ifndef CLRSAMPLER_FORMATS_RUNTIME_STARTUP_HELPERS_H_
#define CLRSAMPLER_FORMATS_RUNTIME_STARTUP_HELPERS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "formats/elf/eh_frame.h"
#include "formats/elf/elf_image.h"
#include "formats/elf/relative_relocations.h"

namespace clrsampler {

struct StartupHelper {
  size_t place;             // in the table, from 0
  VirtualAddress function;  // where an entry of the unwind table begins
  VirtualAddress call;      // the instruction that sets it
};

// The helpers of the table at `table`, which has so many places; by address of the call. Empty: not exactly one
// function changes the table as is known, or it is called more than 256 times. Any thread; 3 ms for libcoreclr.so.
std::vector<StartupHelper> FindStartupHelpers(const ElfImage& image, const EhFrameTable& unwind,
                                              const RelativeRelocations& relocations, VirtualAddress table,
                                              size_t places);

// The allocator of strings: what is passed on behind the last of the calls that set an allocator. nullopt: what stands
// there is something else.
std::optional<VirtualAddress> StringAllocatorBehind(const ElfImage& image, const EhFrameTable& unwind,
                                                    const RelativeRelocations& relocations, VirtualAddress last_call);

// The one function that this function jumps to, calls left aside. nullopt: it jumps to none or to several, or its
// instructions are not known.
std::optional<VirtualAddress> OnlyJumpFrom(const ElfImage& image, const EhFrameTable& unwind, VirtualAddress function);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_RUNTIME_STARTUP_HELPERS_H_
