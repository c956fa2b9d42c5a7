// The stack of a wait as profiles have it: the functions, a mark of what was waited for, and who ended it.
#ifndef CLRSAMPLER_PIPELINE_WAIT_STACK_H_
#define CLRSAMPLER_PIPELINE_WAIT_STACK_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "pipeline/wait_watch.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"

namespace clrsampler {

// Main loop only. Borrows the table.
class WaitStack {
 public:
  explicit WaitStack(FrameTable& frames) : frames_(frames) {}

  // Valid until the next call. `waker`: who ended it follows behind the mark, its functions from the innermost one on,
  // since they mirror those of the wait.
  std::span<const FrameId> Of(const ObservedWait& wait, bool waker);
  // The frame of waits that have no stack of their own.
  FrameId ShorterThan(uint64_t min_wait_ns);
  FrameId NotTold();

 private:
  void AppendWaker(const ObservedWait& wait);
  FrameId Mark(absl::string_view text);

  FrameTable& frames_;
  std::vector<FrameId> stack_;  // reused
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_WAIT_STACK_H_
