// Stubs of CoreCLR by their instructions on arm64: stub_code.h says what they are.
//
// Source: src/coreclr/vm/arm64/thunktemplates.S (CallCountingStubCode), src/coreclr/vm/arm64/stubs.cpp
// (EmitShuffleThunk, EmitComputedInstantiatingMethodStub). Measured on 9.0.23 and 10.0.15.
#ifndef CLRSAMPLER_CLR_MEMORY_STUB_CODE_ARM64_H_
#define CLRSAMPLER_CLR_MEMORY_STUB_CODE_ARM64_H_

#include <cstddef>
#include <optional>
#include <span>

#include "clr/memory/stub_code.h"

namespace clrsampler::arm64 {

// The stub that begins at the first of `bytes`; nullopt: another thing, or not all of it is there.
std::optional<StubMatch> CallCountingStub(std::span<const std::byte> bytes);
std::optional<StubMatch> DelegateShuffleThunk(std::span<const std::byte> bytes);
std::optional<StubMatch> InstantiatingStub(std::span<const std::byte> bytes);  // or an UnboxingStub
std::optional<StubMatch> JumpStub(std::span<const std::byte> bytes);

}  // namespace clrsampler::arm64

#endif  // CLRSAMPLER_CLR_MEMORY_STUB_CODE_ARM64_H_
