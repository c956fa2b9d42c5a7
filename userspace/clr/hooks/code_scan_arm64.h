// Reads what single arm64 functions of the runtime say about themselves; the counterpart of code_scan_x64.h.
// Instructions have four bytes each, so none is misread. The register that an address is in is followed only from adrp
// to its next uses.
#ifndef CLRSAMPLER_CLR_HOOKS_CODE_SCAN_ARM64_H_
#define CLRSAMPLER_CLR_HOOKS_CODE_SCAN_ARM64_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "clr/hooks/code_reference.h"

namespace clrsampler::arm64 {

// b and bl; of what follows an adrp: add, ldr.
void ScanReferences(std::span<const std::byte> code, VirtualAddress start, CodeReferenceSink found);

// The frame record is stored by the first instruction (stp x29, x30, [sp, #-n]!), or sp is lowered by it and the record
// stored soon after; paciasp may come first. These instructions are stepped over by the kernel, none reads the program
// counter.
bool BeginsWithFrame(std::span<const std::byte> code);

std::optional<JumpThunk> DecodeJumpThunk(std::span<const std::byte> code, VirtualAddress start);
std::optional<VirtualAddress> CopiedGuid(std::span<const std::byte> code, VirtualAddress start);
std::optional<JitReturnSite> ReturnOfCompileMethod(std::span<const std::byte> code);
std::optional<GcSettings> SettingsOfPostGc(std::span<const std::byte> code, VirtualAddress start,
                                           VirtualAddress gc_done, VirtualAddress diag_gc_end);

}  // namespace clrsampler::arm64

#endif  // CLRSAMPLER_CLR_HOOKS_CODE_SCAN_ARM64_H_
