// When the windows of a continuous run begin and end: one after the other, without gaps.
//
// Windows are cut by the monotonic clock, by which samples come, and are named by the wall clock, by which people ask
// for them. The names follow the wall clock slowly, so that it may be adjusted without gaps or overlaps; where it was
// set, a new line of times begins, and the window before says by how much.
#ifndef CLRSAMPLER_PIPELINE_WINDOW_CLOCK_H_
#define CLRSAMPLER_PIPELINE_WINDOW_CLOCK_H_

#include <cstdint>

#include "os/clock.h"
#include "pipeline/window_cuts.h"
#include "profile/window.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct WindowLengths {
  uint64_t length_ns = 10'000'000'000;
  uint64_t shortest_ns = Window::kShortestNs;  // of a window that a wish ends
  WindowCuts* cuts = nullptr;                  // wishes for earlier ends; may be none
};

struct WindowTimes {
  uint64_t number = 0;  // from 1
  uint64_t begin_unix_ns = 0, end_unix_ns = 0;
  uint64_t length_ns = 0;     // by the monotonic clock
  int64_t clock_jump_ns = 0;  // by how much the wall clock was set before this window
};

// Main loop only.
class WindowClock {
 public:
  static constexpr int64_t kJumpNs = 1'000'000'000;  // above this the clock was set, or the machine slept

  explicit WindowClock(const WindowLengths& lengths) : lengths_(lengths) {}

  // The first one.
  void Begin(MonotonicTime now, uint64_t now_unix_ns);
  // When the one at hand is to end.
  MonotonicTime End() const;
  // It ends there, and the next one begins. `unix_ns_of_end`: what the wall clock shows at that moment.
  WindowTimes Close(MonotonicTime end, uint64_t unix_ns_of_end);

  // The window at hand.
  MonotonicTime begin() const { return begin_; }
  uint64_t begin_unix_ns() const { return begin_unix_ns_; }

 private:
  const WindowLengths lengths_;
  MonotonicTime begin_;
  uint64_t begin_unix_ns_ = 0;
  int64_t jump_ns_ = 0;
  uint64_t number_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_WINDOW_CLOCK_H_
