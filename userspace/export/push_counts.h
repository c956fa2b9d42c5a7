// The work of a pusher as metrics.
#ifndef CLRSAMPLER_EXPORT_PUSH_COUNTS_H_
#define CLRSAMPLER_EXPORT_PUSH_COUNTS_H_

#include "export/metrics.h"
#include "export/pusher.h"

namespace clrsampler {

// `metrics` is borrowed. The messages of the pusher are left to the caller.
PushObserver PyroscopeCounts(Metrics& metrics);
PushObserver OtlpCounts(Metrics& metrics);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_PUSH_COUNTS_H_
