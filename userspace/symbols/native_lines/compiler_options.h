// The compiler's words in debug information about itself and its options (DW_AT_producer).
#ifndef CLRSAMPLER_SYMBOLS_NATIVE_LINES_COMPILER_OPTIONS_H_
#define CLRSAMPLER_SYMBOLS_NATIVE_LINES_COMPILER_OPTIONS_H_

#include "absl/strings/string_view.h"

namespace clrsampler {

// Whether the text proves that the code was not optimised. gcc writes its options down ("GNU C17 12.2.0 -mtune=generic
// -march=x86-64 -g -O0"), and without -O nothing is optimised. Other compilers do not write them, which proves nothing;
// nor does gcc under -gno-record-gcc-switches. Pure.
bool SaysNotOptimised(absl::string_view producer);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_NATIVE_LINES_COMPILER_OPTIONS_H_
