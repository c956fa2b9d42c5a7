#include "cli/pool_readings.h"

#include <algorithm>

namespace clrsampler {

std::optional<PoolNumbers> PoolReadings::Numbers() {
  const std::optional<PoolState> after = watch_.Read();
  if (!after) return std::nullopt;
  PoolNumbers numbers = {after->min_workers, after->max_workers, after->workers, after->queued};
  if (!before_ || !before_->queued) numbers.queued.reset();
  if (numbers.queued) numbers.queued = std::min(*numbers.queued, *before_->queued);
  return numbers;
}

}  // namespace clrsampler
