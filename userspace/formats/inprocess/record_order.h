// Puts records into the order of their times. Threads write them into the ring beside each other, each a moment after
// it has looked at the clock.
#ifndef CLRSAMPLER_FORMATS_INPROCESS_RECORD_ORDER_H_
#define CLRSAMPLER_FORMATS_INPROCESS_RECORD_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "formats/inprocess/ring_reader.h"

namespace clrsampler {

class RecordOrder {
 public:
  using Receiver = std::function<void(const LibraryRecord&)>;
  // A thread that is interrupted between its look at the clock and its write is late; one by more than this comes
  // behind newer ones.
  static constexpr uint64_t kHoldNs = 50'000'000;
  // Where they take more memory, the older half goes on at once. A record takes 144 bytes and its texts.
  static constexpr size_t kMostHeldBytes = 32 << 20;

  explicit RecordOrder(Receiver receiver) : receiver_(std::move(receiver)) {}

  // How far the process's clock is ahead of ours: it may live in a time namespace. Records get our times.
  void SetClockLead(uint64_t lead_ns) { clock_lead_ns_ = lead_ns; }
  void Add(LibraryRecord record);
  // Gives out what is older than kHoldNs. A time in the far future is as good as none, and does not
  // stay.
  void GiveOut(uint64_t now_ns);
  // Gives out everything.
  void Finish();

 private:
  void Sort();
  void GiveFirst(size_t count);

  Receiver receiver_;
  std::vector<LibraryRecord> held_;
  size_t held_bytes_ = 0;
  uint64_t clock_lead_ns_ = 0;  // modulo 2^64
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_INPROCESS_RECORD_ORDER_H_
