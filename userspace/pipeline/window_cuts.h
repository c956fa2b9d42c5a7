// Wishes of other threads that a window end at a certain moment, so that what is asked for ("the next 30 seconds") is
// at hand right after it.
#ifndef CLRSAMPLER_PIPELINE_WINDOW_CUTS_H_
#define CLRSAMPLER_PIPELINE_WINDOW_CUTS_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>

namespace clrsampler {

// Any thread. Times are of the wall clock, ns. More than kMaxWishes are not taken: such a window ends when it would
// anyway, some seconds later.
class WindowCuts {
 public:
  void Ask(uint64_t unix_ns) {
    const std::lock_guard lock(mutex_);
    if (wishes_.size() < kMaxWishes) wishes_.insert(unix_ns);
  }

  void Clear() {
    const std::lock_guard lock(mutex_);
    wishes_.clear();
  }

  // The earliest wish later than `after`; forgets those up to it.
  std::optional<uint64_t> NextAfter(uint64_t after) {
    const std::lock_guard lock(mutex_);
    wishes_.erase(wishes_.begin(), wishes_.upper_bound(after));
    if (wishes_.empty()) return std::nullopt;
    return *wishes_.begin();
  }

 private:
  static constexpr size_t kMaxWishes = 256;
  std::mutex mutex_;
  std::set<uint64_t> wishes_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_WINDOW_CUTS_H_
