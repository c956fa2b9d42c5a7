// CLOCK_MONOTONIC through a tape: a run that is played has the times of the one that was saved.
#ifndef CLRSAMPLER_OS_TAPED_CLOCK_H_
#define CLRSAMPLER_OS_TAPED_CLOCK_H_

#include "os/clock.h"
#include "os/tape_answer.h"

namespace clrsampler {

// Borrows the tape; nullptr: the system's clock.
class TapedClock : public Clock {
 public:
  explicit TapedClock(Tape* tape) : tape_(tape) {}
  MonotonicTime Now() const override {
    return {Taped(
        tape_, [this] { return system_.Now().ns; }, "clock")};
  }

 private:
  Tape* tape_;
  SystemClock system_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_TAPED_CLOCK_H_
