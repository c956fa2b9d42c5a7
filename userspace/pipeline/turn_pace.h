// How long the recorder's loop waits before it looks again.
#ifndef CLRSAMPLER_PIPELINE_TURN_PACE_H_
#define CLRSAMPLER_PIPELINE_TURN_PACE_H_

#include <cstdint>

#include "os/clock.h"

namespace clrsampler {

// Pure. Main loop only.
class TurnPace {
 public:
  explicit TurnPace(MonotonicTime now) : last_new_(now) {}

  struct Inputs {
    uint64_t news = 0;         // a number that grows with what the targets show anew: methods, mappings, threads
    bool short_turns = false;  // names are replaced faster than turns follow each other
    bool may_rest = false;     // nobody misses what is seen a turn later
  };
  // To be asked once a turn.
  int WaitMs(MonotonicTime now, const Inputs& inputs);

 private:
  uint64_t last_news_ = 0;
  MonotonicTime last_new_;  // when there were any
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_TURN_PACE_H_
