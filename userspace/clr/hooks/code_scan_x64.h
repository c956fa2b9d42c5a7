// Reads what single x86-64 functions of the runtime say about themselves. Each function here gets the bytes of one
// function, from its first to its last, and the address of the first; none reads outside them.
//
// The scan for references does not decode instructions. It takes every place where bytes could be one that refers to an
// address. Operands are misread now and then. That costs nothing but evidence. A reference counts only when its target
// is exactly the start of a function, or exactly the address that was asked for. Whatever is found by way of references
// is a function of the unwind tables, whose first byte is the first of an instruction.
#ifndef CLRSAMPLER_CLR_HOOKS_CODE_SCAN_X64_H_
#define CLRSAMPLER_CLR_HOOKS_CODE_SCAN_X64_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "clr/hooks/code_reference.h"

namespace clrsampler::x64 {

// Branches with 32-bit distance; of what refers to data by rip: mov, lea, cmp, test, call and jmp through memory.
void ScanReferences(std::span<const std::byte> code, VirtualAddress start, CodeReferenceSink found);

// push rbp; mov rbp, rsp. The kernel emulates that push, so a hit costs no single step (arch/x86/kernel/uprobes.c,
// since 4.20). The frame makes callers visible by frame pointers.
bool BeginsWithFrame(std::span<const std::byte> code);

// A frame, moves of each argument into the place of the one before, the frame's end, a jump.
std::optional<JumpThunk> DecodeJumpThunk(std::span<const std::byte> code, VirtualAddress start);

// Where the 16 constant bytes stand that the whole function copies to its second argument.
std::optional<VirtualAddress> CopiedGuid(std::span<const std::byte> code, VirtualAddress start);

// The last conditional jump of compileMethod before it takes down its frame, if the function is known instruction for
// instruction. It is alike in all of .NET 8.0.0 to 10.0.14, but for a slot's number and distances, and another one in
// 11.0.0. So the place is the first byte of an instruction, and what the registers and the frame hold there is known
// (hook_locator.h).
std::optional<JitReturnSite> ReturnOfCompileMethod(std::span<const std::byte> code);

// do_post_gc calls GcDone(settings.condemned_generation), then DiagGCEnd(settings.gc_index,
// settings.condemned_generation, settings.reason, settings.concurrent != 0).
std::optional<GcSettings> SettingsOfPostGc(std::span<const std::byte> code, VirtualAddress start,
                                           VirtualAddress gc_done, VirtualAddress diag_gc_end);

}  // namespace clrsampler::x64

#endif  // CLRSAMPLER_CLR_HOOKS_CODE_SCAN_X64_H_
