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

PushObserver OtlpCounts(Metrics& metrics) {
  PushObserver observer;
  observer.sent = [&metrics](PushResult result, const PushMessage& message) {
    metrics.CountOtlp(result, message.bytes, message.samples);
  };
  observer.lost = [&metrics](PushLoss loss, uint64_t samples) { metrics.CountOtlpLoss(loss, samples); };
  observer.taken = [&metrics](uint64_t samples) { metrics.CountOtlpTaken(samples); };
  observer.rejected = [&metrics](uint64_t profiles) { metrics.CountOtlpRejected(profiles); };
  observer.waiting = [&metrics](const PushQueue& queue) {
    metrics.SetOtlpWaiting(queue.requests, queue.bytes, queue.samples);
  };
  return observer;
}

}  // namespace clrsampler
