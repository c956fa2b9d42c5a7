#include "pipeline/lock_waits.h"

#include <algorithm>
#include <utility>

namespace clrsampler {

void LockWaits::Began(uint64_t tid, MonotonicTime time, std::span<const FrameId> frames) {
  // Only a stream that contradicts itself has so many.
  if (waiting_.size() >= kMaxWaiting) waiting_.clear();
  waiting_[tid] = {time, {frames.begin(), frames.end()}};
}

std::vector<FrameId> LockWaits::Ended(uint64_t tid, MonotonicTime time, uint64_t duration_ns) {
  const auto found = waiting_.find(tid);
  if (found == waiting_.end()) return {};
  const Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  const uint64_t began_ns = time.ns - std::min(time.ns, duration_ns);
  const auto [less, more] = std::minmax(began_ns, waiting.since.ns);
  if (more - less > kToleranceNs) return {};
  return waiting.frames;
}

}  // namespace clrsampler
