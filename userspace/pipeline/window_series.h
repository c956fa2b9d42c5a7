// The windows of a continuous run: what is in them (WindowBuilder), from when to when (WindowClock), and whose account
// they carry.
#ifndef CLRSAMPLER_PIPELINE_WINDOW_SERIES_H_
#define CLRSAMPLER_PIPELINE_WINDOW_SERIES_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "os/clock.h"
#include "pipeline/window_builder.h"
#include "pipeline/window_clock.h"
#include "profile/account.h"
#include "profile/window.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"
#include "symbols/source_files.h"

namespace clrsampler {

// Main loop only. Borrows what it is given.
class WindowSeries {
 public:
  // `sources` and `min_wait_ns`: as WindowBuilder's. `unix_now`: the wall clock, ns, which may be set.
  WindowSeries(const WindowLengths& lengths, FrameTable& frames, const SourceFiles* sources, uint64_t min_wait_ns,
               Notices& notices, const Clock& clock, std::function<uint64_t()> unix_now)
      : clock_(clock),
        unix_now_(std::move(unix_now)),
        notices_(notices),
        times_(lengths),
        builder_(frames, sources, min_wait_ns) {}

  WindowBuilder& builder() { return builder_; }

  // The first one begins now.
  void Begin();
  // When the one at hand is to end, and since when it is.
  MonotonicTime End() const { return times_.End(); }
  MonotonicTime begin() const { return times_.begin(); }

  // Ends the window at hand there. `account`: of all that happened in it, but for its frames, which are counted here.
  // `rates`: SamplingRate::TakeWindow. A window that no model can hold is lost: a notice says so, and the account.
  Window Close(MonotonicTime end, Account account, std::vector<uint32_t> rates);

 private:
  const Clock& clock_;
  const std::function<uint64_t()> unix_now_;
  Notices& notices_;
  WindowClock times_;
  WindowBuilder builder_;
  MonotonicTime notices_repeated_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_WINDOW_SERIES_H_
