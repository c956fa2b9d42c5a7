// Where the first pass of every exception begins, whatever has thrown it: IL, the runtime's own code, or a signal.
//
//  - .NET 9 to 11: managed code looks for handlers, and asks the runtime for the frames. The entry point that begins
//    with them is SfiInit, which the runtime's own table of entry points names (formats/runtime/runtime_functions.h),
//    beside SfiNext (src/coreclr/vm/exceptionhandling.cpp).
//  - .NET 8: native code looks for handlers, and reports each exception to the event sinks as it meets the first frame.
//    Whether anybody listens is asked only inside of that function (exception_scan_x64.h). On arm64 it is not known.
// Measured on x64 (8.0.30 to 11.0.0, musl ones, single-file hosts) and arm64 (9.0.23, 10.0.15, 11.0.0).
#ifndef CLRSAMPLER_CLR_HOOKS_EXCEPTION_SEARCH_H_
#define CLRSAMPLER_CLR_HOOKS_EXCEPTION_SEARCH_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

enum class ExceptionForm : uint8_t {
  kFrameIterator,  // SfiInit(StackFrameIterator*, CONTEXT*, ...), at the beginning of each pass
  kEvent,          // ExceptionThrown(CrawlFrame*, rethrown, is_new)
};

// One address to probe: a function's first. It holds for exactly the bytes it was found in.
struct ExceptionPoint {
  VirtualAddress address;  // before relocation
  FileOffset offset;       // what a uprobe takes
  ExceptionForm form = ExceptionForm::kFrameIterator;
  std::string evidence;  // half a sentence, for doctor and reports
};

// Errors are a sentence with a hint. `runtime`: libcoreclr.so or a single-file host. 9 ms of CPU time for a
// libcoreclr.so.
absl::StatusOr<ExceptionPoint> LocateExceptions(const ElfImage& runtime);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_EXCEPTION_SEARCH_H_
