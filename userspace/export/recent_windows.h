// The last windows in memory, newest last, for everybody who is interested in them as they come: profiles of the next
// seconds, pushing, questions where there is no store.
//
// Bounded: the oldest goes when there are more than `most`. Any thread; windows themselves are never changed.
#ifndef CLRSAMPLER_EXPORT_RECENT_WINDOWS_H_
#define CLRSAMPLER_EXPORT_RECENT_WINDOWS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "profile/window.h"

namespace clrsampler {

using SharedWindow = std::shared_ptr<const Window>;

class RecentWindows {
 public:
  // Keeps the last `most`, and more as long as they are of the last `span_ns`: windows may be cut short. At most ten
  // times as many.
  explicit RecentWindows(size_t most, uint64_t span_ns = 0) : most_(most), span_ns_(span_ns) {}

  // In the order of their numbers.
  void Add(SharedWindow window);
  // Nothing more will come: everybody who waits goes on.
  void Close();
  // Readers that wait look up, as they do when a window comes.
  void Wake();

  std::vector<SharedWindow> All() const;
  SharedWindow Newest() const;  // nullptr: none yet

  // The windows that came behind the one with this number (0: all that are kept). Waits until there is something, until
  // `timeout` is over, Wake or Close. A reader that was away for too long sees a gap in the numbers.
  std::vector<SharedWindow> After(uint64_t number, std::chrono::nanoseconds timeout) const;
  bool closed() const;

 private:
  bool KeepsOldest() const;

  const size_t most_;
  const uint64_t span_ns_;
  // The main loop adds, servers' threads read.
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<SharedWindow> windows_;
  uint64_t wakes_ = 0;
  bool closed_ = false;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_RECENT_WINDOWS_H_
