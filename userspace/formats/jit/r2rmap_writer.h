// r2rmap files: header and rows -> text. The counterpart of r2rmap_parser.h, which names the format; what is written
// reads back equal. Pure, and any thread may call it.
#ifndef CLRSAMPLER_FORMATS_JIT_R2RMAP_WRITER_H_
#define CLRSAMPLER_FORMATS_JIT_R2RMAP_WRITER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "formats/jit/r2rmap_parser.h"

namespace clrsampler {

// Whether a row can have the name: not empty, on one line, and not too long for readers.
bool FitsR2rMap(absl::string_view name);

// Lines as crossgen2 writes them. Rows whose names do not fit are left out.
std::string WriteR2rMap(const R2rMap& map);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_JIT_R2RMAP_WRITER_H_
