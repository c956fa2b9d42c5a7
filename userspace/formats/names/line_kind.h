// How well a line stands for a piece of code.
#ifndef CLRSAMPLER_FORMATS_NAMES_LINE_KIND_H_
#define CLRSAMPLER_FORMATS_NAMES_LINE_KIND_H_

#include <cstdint>

namespace clrsampler {

enum class LineKind : uint8_t {
  kNone,       // there is no line
  kExact,      // code that was not optimised: the line is that of the statement
  kOptimised,  // the line of one of the statements that the code was made of; inlined code has its caller's
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NAMES_LINE_KIND_H_
