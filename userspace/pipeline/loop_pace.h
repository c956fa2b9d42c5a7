// How long the recorder's loop waits before it looks again.
#ifndef CLRSAMPLER_PIPELINE_LOOP_PACE_H_
#define CLRSAMPLER_PIPELINE_LOOP_PACE_H_

#include <cstdint>

#include "os/clock.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Pure. Main loop only.
class LoopPace {
 public:
  explicit LoopPace(MonotonicTime now) : last_new_(now) {}

  struct Inputs {
    uint64_t news = 0;              // a number that grows with what the targets show anew: methods, mappings, threads
    bool short_iterations = false;  // names are replaced faster than iterations follow each other
    bool may_idle = false;          // nobody misses what is seen an iteration later
  };
  // To be asked once an iteration.
  int WaitMs(MonotonicTime now, const Inputs& inputs);

 private:
  uint64_t last_news_ = 0;
  MonotonicTime last_new_;  // when there were any
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_LOOP_PACE_H_
