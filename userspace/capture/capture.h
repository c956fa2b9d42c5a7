// A capture as a whole: what the kernel sends, and what is asked of it.
#ifndef CLRSAMPLER_CAPTURE_CAPTURE_H_
#define CLRSAMPLER_CAPTURE_CAPTURE_H_

#include "capture/capture_control.h"
#include "capture/event_stream.h"

namespace clrsampler {

class Capture : public EventStream, public CaptureControl {};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_CAPTURE_H_
