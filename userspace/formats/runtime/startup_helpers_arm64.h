// The arm64 half of formats/runtime/startup_helpers.h, which says what is looked for.
//
// A compiler for arm64 puts addresses together over several instructions, in any order, and takes those of other
// files' functions from the image's table of addresses. So code is followed: five kinds of instructions give registers
// a known content, and all others take it away. Measured on 9.0.23, 10.0.15 and 11.0.0.
#ifndef CLRSAMPLER_FORMATS_RUNTIME_STARTUP_HELPERS_ARM64_H_
#define CLRSAMPLER_FORMATS_RUNTIME_STARTUP_HELPERS_ARM64_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "formats/elf/elf_image.h"
#include "formats/elf/relative_relocations.h"

namespace clrsampler {

using Arm64Code = std::span<const std::byte>;  // the rest of a segment of code

// Whether a function that begins there is that of the table: adrp x8; add x8; str x1, [x8, w0, uxtw #3]; ret.
bool IsArm64Setter(Arm64Code code, VirtualAddress start, VirtualAddress table);

// Called for each call of the setter whose place and function are known: place, function, where the call is.
using Arm64CallFound = std::function<void(uint64_t place, VirtualAddress function, VirtualAddress call)>;
void FindArm64Calls(Arm64Code code, VirtualAddress start, VirtualAddress setter, const RelativeRelocations& relocations,
                    const Arm64CallFound& found);

// The value that is passed as the first argument of the next call, if the second one is 0. `code` begins behind a call.
std::optional<VirtualAddress> PassedWithZeroArm64(Arm64Code code, VirtualAddress start,
                                                  const RelativeRelocations& relocations);

// The one place outside of this function that it jumps to. nullopt: none, several, or one that is in a register.
std::optional<VirtualAddress> OnlyJumpArm64(Arm64Code function, VirtualAddress start);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_RUNTIME_STARTUP_HELPERS_ARM64_H_
