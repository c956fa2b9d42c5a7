// The stack of a wait as profiles have it: the functions, a mark of what was waited for, and who ended it.
#ifndef CLRSAMPLER_PIPELINE_WAIT_STACK_H_
#define CLRSAMPLER_PIPELINE_WAIT_STACK_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "pipeline/wait_watch.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"

namespace clrsampler {

// Frames live as long as their table. A service's is kept for weeks, in which a host has any number of processes.
enum class WakerNames : uint8_t {
  kNone,   // wakers are not shown
  kExact,  // another process is "sh-4711"
  kFew,    // it is "sh", and beyond kMostWakerNames there are no more names
};

// Main loop only. Borrows the table.
class WaitStack {
 public:
  static constexpr size_t kMostWakerNames = 1000;

  WaitStack(FrameTable& frames, WakerNames waker_names) : frames_(frames), waker_names_(waker_names) {}

  // Valid until the next call. The waker follows behind the mark, its functions from the innermost one on, since they
  // mirror those of the wait.
  std::span<const FrameId> Of(const ObservedWait& wait);
  // The frame of waits that have no stack of their own.
  FrameId ShorterThan(uint64_t min_wait_ns);
  FrameId NotTold();

 private:
  void AppendWaker(const ObservedWait& wait);
  std::string WakerText(const ObservedWait& wait);
  FrameId Mark(absl::string_view text);

  FrameTable& frames_;
  const WakerNames waker_names_;
  absl::flat_hash_set<std::string> known_wakers_;  // of kFew
  std::vector<FrameId> stack_;                     // reused
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_WAIT_STACK_H_
