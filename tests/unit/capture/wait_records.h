// The records of waits that a sampler has sent, by thread.
#ifndef CLRSAMPLER_TESTS_UNIT_CAPTURE_WAIT_RECORDS_H_
#define CLRSAMPLER_TESTS_UNIT_CAPTURE_WAIT_RECORDS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "capture/sampler.h"
#include "clrsampler/wire.h"
#include "unit/capture/live_targets.h"

namespace clrsampler::test_support {

struct WaitRecords {
  std::map<uint32_t, std::vector<wire_wait>> by_thread;
  std::vector<DecodedSample> stacks;  // of threads that wait

  bool empty() const { return by_thread.empty() && stacks.empty(); }
  // The one that a look at the end has made; nullptr: there is none.
  const wire_wait* OpenOf(uint32_t tid) const;
};

// Takes what has come since the last call.
WaitRecords DrainWaitRecords(Sampler& sampler);

// Waits of more than a millisecond of processes that are tracked.
SamplerOptions FollowingWaits();

uint32_t OwnTid();

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_CAPTURE_WAIT_RECORDS_H_
