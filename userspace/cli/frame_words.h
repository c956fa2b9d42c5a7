// Frames in words, for the commands that print them one by one.
#ifndef CLRSAMPLER_CLI_FRAME_WORDS_H_
#define CLRSAMPLER_CLI_FRAME_WORDS_H_

#include "symbols/frame.h"
#include "unwind/frame_chain.h"

namespace clrsampler {

const char* FrameKindText(const Frame& frame);  // "none" where it has no name
const char* FrameOriginText(FrameOrigin origin);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_FRAME_WORDS_H_
