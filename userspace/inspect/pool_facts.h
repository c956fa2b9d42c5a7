// A short look at the thread pool of a process: what its fields say, and what its workers do.
#ifndef CLRSAMPLER_INSPECT_POOL_FACTS_H_
#define CLRSAMPLER_INSPECT_POOL_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "clr/memory/pool_reader.h"

namespace clrsampler {

// One of several moments.
struct PoolMoment {
  PoolState state;
  uint32_t seen = 0;     // threads of the pool, by their names
  uint32_t waiting = 0;  // of these: neither on a CPU nor waiting for one
};

struct PoolFacts {
  std::vector<PoolMoment> moments;  // at least one
};

// Looks once, and where work is left lying that no other worker may begin, for a second. nullopt: there is no pool, or
// it can't be read each time.
std::optional<PoolFacts> ReadPoolFacts(const std::string& proc_root, uint32_t pid, RuntimeMemory& runtime);

}  // namespace clrsampler

#endif  // CLRSAMPLER_INSPECT_POOL_FACTS_H_
