// What a pusher does, as metrics.
#ifndef CLRSAMPLER_EXPORT_PUSH_COUNTS_H_
#define CLRSAMPLER_EXPORT_PUSH_COUNTS_H_

#include "export/metrics.h"
#include "export/pusher.h"

namespace clrsampler {

// `metrics` is borrowed. What the pusher says is left to the caller.
PushObserver PyroscopeCounts(Metrics& metrics);
PushObserver OtlpCounts(Metrics& metrics);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_PUSH_COUNTS_H_
