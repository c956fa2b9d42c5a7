#ifndef CLRSAMPLER_TOOLS_R2R_CHECK_FRAMES_H_
#define CLRSAMPLER_TOOLS_R2R_CHECK_FRAMES_H_

#include "formats/pe/r2r_image.h"

namespace clrsampler {

// Prints BEGIN BYTES EH_FRAME of each method of an image for arm64: the last is in hexadecimal, as a jitdump has it.
// Number of methods without it.
int PrintFrames(const R2rImage& image);

}  // namespace clrsampler

#endif  // CLRSAMPLER_TOOLS_R2R_CHECK_FRAMES_H_
