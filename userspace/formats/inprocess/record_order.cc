#include "formats/inprocess/record_order.h"

#include <algorithm>
#include <iterator>

namespace clrsampler {

void RecordOrder::GiveFirst(size_t count) {
  for (size_t i = 0; i < count; ++i) receiver_(held_[i]);
  held_.erase(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(count));
}

void RecordOrder::GiveOut(uint64_t now_ns) {
  std::stable_sort(held_.begin(), held_.end(),
                   [](const LibraryRecord& a, const LibraryRecord& b) { return a.time_ns < b.time_ns; });
  const auto is_held = [&](const LibraryRecord& record) {
    // `now_ns` was before the ring was emptied.
    return (record.time_ns <= now_ns ? now_ns - record.time_ns : record.time_ns - now_ns) < kHoldNs;
  };
  const auto first_held = std::find_if(held_.begin(), held_.end(), is_held);
  const auto first_future = std::find_if_not(first_held, held_.end(), is_held);
  // Those of a far future go before those that are held.
  std::rotate(first_held, first_future, held_.end());
  const size_t held = static_cast<size_t>(std::distance(first_held, first_future));
  const size_t ready = held_.size() - held;
  GiveFirst(std::max(ready, held_.size() > kMostHeld ? held_.size() - kMostHeld : 0));
}

void RecordOrder::Finish() {
  std::stable_sort(held_.begin(), held_.end(),
                   [](const LibraryRecord& a, const LibraryRecord& b) { return a.time_ns < b.time_ns; });
  GiveFirst(held_.size());
}

}  // namespace clrsampler
