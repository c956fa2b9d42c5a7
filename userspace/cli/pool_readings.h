// The numbers of a process's thread pool, read before a recording and after it.
#ifndef CLRSAMPLER_CLI_POOL_READINGS_H_
#define CLRSAMPLER_CLI_POOL_READINGS_H_

#include <cstdint>
#include <optional>

#include "output/pool_summary.h"
#include "pipeline/pool_watch.h"

namespace clrsampler {

// An item that is left lying all the time must be there both times, so the lesser number of queued work items counts.
// So does the reading at which the pool would have let more others work.
PoolNumbers NumbersOfReadings(const std::optional<PoolState>& before, const PoolState& after);

// Reads once when it is made.
class PoolReadings {
 public:
  // `files`: as PoolWatch's.
  PoolReadings(uint32_t pid, FileBroker* files) : watch_(pid, files), before_(watch_.Read()) {}

  // Reads again. nullopt: the process has no pool that can be read, or none any more.
  std::optional<PoolNumbers> Numbers();

 private:
  PoolWatch watch_;
  const std::optional<PoolState> before_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_POOL_READINGS_H_
