// Gives a session all that runtimes do while they are sampled.
#ifndef CLRSAMPLER_PIPELINE_RUNTIME_WATCH_OPTIONS_H_
#define CLRSAMPLER_PIPELINE_RUNTIME_WATCH_OPTIONS_H_

#include "pipeline/run_parts.h"
#include "pipeline/session.h"
#include "runtime_events/runtime_watch.h"

namespace clrsampler {

// Both are borrowed by what is returned, and the capture is opened.
RuntimeWatchOptions RuntimeWatchOptionsFor(RunParts& parts, Session& session);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_RUNTIME_WATCH_OPTIONS_H_
