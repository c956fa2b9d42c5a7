// Threads that wait for each other in a circle, so that none of them will ever go on.
#ifndef CLRSAMPLER_PROFILE_WAIT_CYCLES_H_
#define CLRSAMPLER_PROFILE_WAIT_CYCLES_H_

#include <cstdint>
#include <map>
#include <vector>

namespace clrsampler {

// `waits_for`: of each thread that waits, the thread that holds what it wants; each waits for one at most. The circles
// in the order of their lowest threads, each beginning with its lowest one and followed by whom that waits for.
std::vector<std::vector<uint32_t>> WaitCycles(const std::map<uint32_t, uint32_t>& waits_for);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_WAIT_CYCLES_H_
