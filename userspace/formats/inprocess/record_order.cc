#include "formats/inprocess/record_order.h"

#include <algorithm>
#include <iterator>

namespace clrsampler {
namespace {

size_t BytesOf(const LibraryRecord& record) {
  return sizeof record + record.texts[0].size() + record.texts[1].size() +
         record.map.size() * sizeof(InprocessMapEntry);
}

}  // namespace

void RecordOrder::Add(LibraryRecord record) {
  record.time_ns -= clock_lead_ns_;
  held_bytes_ += BytesOf(record);
  held_.push_back(std::move(record));
  if (held_bytes_ <= kMostHeldBytes) return;
  Sort();
  size_t bytes = 0, older = 0;
  while (bytes < kMostHeldBytes / 2) bytes += BytesOf(held_[older++]);
  GiveFirst(older);
}

void RecordOrder::Sort() {
  std::stable_sort(held_.begin(), held_.end(),
                   [](const LibraryRecord& a, const LibraryRecord& b) { return a.time_ns < b.time_ns; });
}

void RecordOrder::GiveFirst(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    held_bytes_ -= BytesOf(held_[i]);
    receiver_(held_[i]);
  }
  held_.erase(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(count));
}

void RecordOrder::GiveOut(uint64_t now_ns) {
  Sort();
  const auto is_held = [&](const LibraryRecord& record) {
    // `now_ns` was before the ring was emptied.
    return (record.time_ns <= now_ns ? now_ns - record.time_ns : record.time_ns - now_ns) < kHoldNs;
  };
  const auto first_held = std::find_if(held_.begin(), held_.end(), is_held);
  const auto first_future = std::find_if_not(first_held, held_.end(), is_held);
  // Those of a far future go before those that are held.
  std::rotate(first_held, first_future, held_.end());
  GiveFirst(held_.size() - static_cast<size_t>(std::distance(first_held, first_future)));
}

void RecordOrder::Finish() {
  Sort();
  GiveFirst(held_.size());
}

}  // namespace clrsampler
