// Puts the events of a stream into the order of their times, for a receiver that wants them so.
//
// An event with the mark `sorted`, and a sequence point, say that nothing older will come: what is held and not newer
// is given out then. A runtime writes such a mark in each batch, ten batches a second.
//
// Held are copies of events, at most `limit_bytes`. Where that is not enough, the older half is given out before its
// time. Then an event may be older than one before it, and unsorted() counts these.
//
// Threads: one. Losses pass at once: no time is known for them.
#ifndef CLRSAMPLER_FORMATS_NETTRACE_TIME_ORDER_H_
#define CLRSAMPLER_FORMATS_NETTRACE_TIME_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/nettrace/nettrace_records.h"

namespace clrsampler {

class TimeOrder : public NettraceSink {
 public:
  // `sorted` receives the events and outlives this.
  explicit TimeOrder(NettraceSink& sorted, size_t limit_bytes = 64 << 20)
      : sorted_(sorted), limit_bytes_(limit_bytes) {}

  void OnStart(const NettraceStart& start) override { sorted_.OnStart(start); }
  void OnEvent(const NettraceEvent& event) override;
  void OnLost(uint64_t capture_thread, uint64_t count) override { sorted_.OnLost(capture_thread, count); }
  void OnSequencePoint(uint64_t ticks) override;

  // The stream has ended, in whatever way. The reader, whose descriptions events refer to, is still there.
  void Finish();

  uint64_t unsorted() const { return unsorted_; }

 private:
  struct Held {
    NettraceEvent event;  // its spans are those of the two below
    std::vector<std::byte> payload;
    std::vector<uint64_t> stack;
    uint64_t number = 0;  // of arrival: events of one time keep their order

    size_t bytes() const { return sizeof(Held) + payload.size() + stack.size() * sizeof(uint64_t); }
  };
  static bool IsLater(const Held& a, const Held& b);

  void GiveOldest();
  void GiveUpTo(uint64_t ticks);

  NettraceSink& sorted_;
  size_t limit_bytes_;
  std::vector<Held> held_;  // a heap, the oldest first
  size_t held_bytes_ = 0;
  uint64_t arrived_ = 0;
  uint64_t given_ticks_ = 0;  // the newest event given out
  uint64_t unsorted_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NETTRACE_TIME_ORDER_H_
