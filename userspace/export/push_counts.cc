#include "export/push_counts.h"

namespace clrsampler {

PushObserver PyroscopeCounts(Metrics& metrics) {
  PushObserver observer;
  observer.sent = [&metrics](PushResult result, const PushMessage& message) {
    metrics.CountPush(result, message.bytes);
  };
  observer.lost = [&metrics](PushLoss loss, uint64_t) { metrics.CountPushLoss(loss); };
  return observer;
}

}  // namespace clrsampler
