// Stubs of CoreCLR by their instructions on x64: stub_code.h says what they are.
//
// Source: src/coreclr/vm/amd64/thunktemplates.asm (CallCountingStubCode), src/coreclr/vm/i386/stublinkerx86.cpp
// (EmitShuffleThunk, EmitComputedInstantiatingMethodStub). Measured on 8.0.30, 9.0.19 and 10.0.14.
#ifndef CLRSAMPLER_CLR_MEMORY_STUB_CODE_X64_H_
#define CLRSAMPLER_CLR_MEMORY_STUB_CODE_X64_H_

#include <cstddef>
#include <optional>
#include <span>

#include "clr/memory/stub_code.h"

namespace clrsampler::x64 {

// The stub that begins at the first of `bytes`; nullopt: another thing, or not all of it is there.
std::optional<StubMatch> CallCountingStub(std::span<const std::byte> bytes);
std::optional<StubMatch> DelegateShuffleThunk(std::span<const std::byte> bytes);
std::optional<StubMatch> InstantiatingStub(std::span<const std::byte> bytes);  // or an UnboxingStub
std::optional<StubMatch> JumpStub(std::span<const std::byte> bytes);

}  // namespace clrsampler::x64

#endif  // CLRSAMPLER_CLR_MEMORY_STUB_CODE_X64_H_
