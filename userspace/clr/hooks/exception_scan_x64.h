// Reads in x86-64 code of .NET 8 where the runtime reports an exception to its event sinks
// (ETW::ExceptionLog::ExceptionThrown, src/coreclr/vm/eventtrace.cpp), and which structures a probe reads there. The
// numbers are those of wire.h. Code that has others is not the function.
#ifndef CLRSAMPLER_CLR_HOOKS_EXCEPTION_SCAN_X64_H_
#define CLRSAMPLER_CLR_HOOKS_EXCEPTION_SCAN_X64_H_

#include <cstddef>
#include <optional>
#include <span>

#include "formats/elf/address_conversion.h"

namespace clrsampler::x64 {

// `code` are one function's bytes, from its first to its last, which begin at `start`. The function that it asks for
// the object, if `code` is the report. The report goes on only where one of its last two arguments is not 0, and tests
// the keywords of exceptions twice. It asks for the object of the thread's tracker, and takes the address from the
// frame's registers.
std::optional<VirtualAddress> ObjectReaderOfReport(std::span<const std::byte> code, VirtualAddress start);

// Whether `code` is that function. It reads the object by the tracker's handle, where there is a tracker.
bool ReadsObjectOfTracker(std::span<const std::byte> code);

}  // namespace clrsampler::x64

#endif  // CLRSAMPLER_CLR_HOOKS_EXCEPTION_SCAN_X64_H_
