#include "cli/pool_readings.h"

#include <algorithm>

namespace clrsampler {
namespace {

int64_t MoreToWork(const PoolState& state) { return int64_t{state.wanted} - state.working; }

}  // namespace

PoolNumbers NumbersOfReadings(const std::optional<PoolState>& before, const PoolState& after) {
  PoolNumbers numbers = {after.min_workers, after.max_workers, after.workers, after.queued};
  if (!before || !before->queued) numbers.queued.reset();
  if (!before) return numbers;
  if (numbers.queued) numbers.queued = std::min(*numbers.queued, *before->queued);
  const PoolState& roomier = MoreToWork(*before) > MoreToWork(after) ? *before : after;
  numbers.working = roomier.working;
  numbers.wanted = roomier.wanted;
  return numbers;
}

std::optional<PoolNumbers> PoolReadings::Numbers() {
  const std::optional<PoolState> after = watch_.Read();
  if (!after) return std::nullopt;
  return NumbersOfReadings(before_, *after);
}

}  // namespace clrsampler
