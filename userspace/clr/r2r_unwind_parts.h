// The unwind data of a method of a ready-to-run image, as it stands in the image's file.
#ifndef CLRSAMPLER_CLR_R2R_UNWIND_PARTS_H_
#define CLRSAMPLER_CLR_R2R_UNWIND_PARTS_H_

#include <cstdint>
#include <vector>

#include "formats/pe/r2r_image.h"
#include "symbols/code_source.h"

namespace clrsampler {

// The unwind data of the code that R2rImage::HotCodeOf says. `method` as in R2rCodePlace. A part whose data is damaged
// is left out. The caller looks afterwards whether the file is still whole.
std::vector<CodeUnwind> UnwindPartsOf(const R2rImage& image, uint32_t method);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_R2R_UNWIND_PARTS_H_
