// Samples and side-band events wait here until every source has seen everything up to their time; they leave in the
// order of their times, whatever CPU they come from.
#ifndef CLRSAMPLER_PROFILE_HOLD_QUEUE_H_
#define CLRSAMPLER_PROFILE_HOLD_QUEUE_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "os/clock.h"
#include "status/thread_checker.h"

namespace clrsampler {

// T is moved in and out. Items of equal time leave in the order in which they came. Main loop only.
template <typename T>
class HoldQueue {
 public:
  void Push(MonotonicTime time, T item) {
    main_loop_.Check();
    items_.push_back({time, next_order_++, std::move(item)});
  }

  // Calls visit(time, item&) for the items up to `horizon`, in order. When it says false the item stays, and with it
  // all that follow. An item older than one that has left already (its ring was read too late) is visited all the same;
  // late() counts those.
  template <typename Visitor>
  void PopUntil(MonotonicTime horizon, Visitor&& visit) {
    main_loop_.Check();
    Sort();
    size_t taken = 0;
    while (taken < items_.size() && items_[taken].time <= horizon) {
      Item& item = items_[taken];
      if (!visit(item.time, item.value)) break;
      ++taken;
      if (item.time < last_popped_) {
        ++late_;
      } else {
        last_popped_ = item.time;
      }
    }
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(taken));
    sorted_ = items_.size();
  }

  // The time of the item that leaves next, if it is older than `time`, else that.
  MonotonicTime OldestOr(MonotonicTime time) const {
    if (sorted_ > 0) time = std::min(time, items_.front().time);
    for (size_t i = sorted_; i < items_.size(); ++i) time = std::min(time, items_[i].time);
    return time;
  }

  size_t size() const { return items_.size(); }
  uint64_t late() const { return late_; }

 private:
  struct Item {
    MonotonicTime time;
    uint64_t order;
    T value;
  };

  // The part that was sorted before stays so: under a backlog the new is little.
  void Sort() {
    if (sorted_ == items_.size()) return;
    const auto earlier = [](const Item& a, const Item& b) {
      return a.time != b.time ? a.time < b.time : a.order < b.order;
    };
    const auto middle = items_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    std::sort(middle, items_.end(), earlier);
    if (sorted_ > 0 && earlier(*middle, *(middle - 1)))
      std::inplace_merge(items_.begin(), middle, items_.end(), earlier);
    sorted_ = items_.size();
  }

  std::vector<Item> items_;
  size_t sorted_ = 0;  // so many, from the first on
  uint64_t next_order_ = 0;
  MonotonicTime last_popped_ = MonotonicTime::Min();
  uint64_t late_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_HOLD_QUEUE_H_
