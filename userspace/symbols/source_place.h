// Where the source text of a frame's code is.
#ifndef CLRSAMPLER_SYMBOLS_SOURCE_PLACE_H_
#define CLRSAMPLER_SYMBOLS_SOURCE_PLACE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "formats/names/line_kind.h"

namespace clrsampler {

struct SourcePlace {
  std::string file;     // as the compiler wrote it: a path of the machine that compiled, or any text of a `#line`
  uint32_t line = 0;    // from 1; 0: not known
  uint32_t column = 0;  // likewise
  LineKind kind = LineKind::kNone;

  friend bool operator==(const SourcePlace&, const SourcePlace&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const SourcePlace& place) {
    return H::combine(std::move(h), place.file, place.line, place.column, place.kind);
  }
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_SOURCE_PLACE_H_
