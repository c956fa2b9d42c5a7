#include "formats/nettrace/time_order.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace clrsampler {

bool TimeOrder::IsLater(const Held& a, const Held& b) {
  return std::tie(a.event.ticks, a.number) > std::tie(b.event.ticks, b.number);
}

void TimeOrder::OnEvent(const NettraceEvent& event) {
  Held held{event, {event.payload.begin(), event.payload.end()}, {event.stack.begin(), event.stack.end()}, arrived_++};
  held.event.payload = held.payload;  // a moved vector keeps its place
  held.event.stack = held.stack;
  held_bytes_ += held.bytes();
  held_.push_back(std::move(held));
  std::push_heap(held_.begin(), held_.end(), IsLater);
  if (event.sorted) GiveUpTo(event.ticks);
  if (held_bytes_ <= limit_bytes_) return;
  while (!held_.empty() && held_bytes_ > limit_bytes_ / 2) GiveOldest();
}

void TimeOrder::OnSequencePoint(uint64_t ticks) {
  GiveUpTo(std::numeric_limits<uint64_t>::max());
  sorted_.OnSequencePoint(ticks);
}

void TimeOrder::Finish() { GiveUpTo(std::numeric_limits<uint64_t>::max()); }

void TimeOrder::GiveUpTo(uint64_t ticks) {
  while (!held_.empty() && held_.front().event.ticks <= ticks) GiveOldest();
}

void TimeOrder::GiveOldest() {
  std::pop_heap(held_.begin(), held_.end(), IsLater);
  const Held oldest = std::move(held_.back());
  held_.pop_back();
  held_bytes_ -= oldest.bytes();
  if (oldest.event.ticks < given_ticks_) ++unsorted_;
  given_ticks_ = std::max(given_ticks_, oldest.event.ticks);
  sorted_.OnEvent(oldest.event);
}

}  // namespace clrsampler
