// The code that every thread, or a process's main function, begins in.
#ifndef CLRSAMPLER_PIPELINE_THREAD_START_H_
#define CLRSAMPLER_PIPELINE_THREAD_START_H_

#include "symbols/frame.h"

namespace clrsampler {

// libc's and the loader's functions of that kind, by their symbols. They keep data in the frame pointer, so that a
// chain of frame pointers seems broken there; there is nothing above them.
bool StartsThread(const Frame& frame);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_THREAD_START_H_
