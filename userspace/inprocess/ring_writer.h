// The library's side of the ring: many threads write, none of them waits.
//
// Nothing but libc: this is part of what is loaded into foreign processes.
#ifndef CLRSAMPLER_INPROCESS_RING_WRITER_H_
#define CLRSAMPLER_INPROCESS_RING_WRITER_H_

#include <cstddef>
#include <cstdint>

#include "clrsampler/inprocess_ring.h"

namespace clrsampler {

// UTF-16 units, or other data in pieces of two bytes.
struct InprocessText {
  const void* units = nullptr;
  uint16_t count = 0;
};

// The content of a record, without its place.
struct InprocessMessage {
  InprocessKind kind{};
  uint64_t time_ns = 0;
  uint32_t tid = 0;
  uint64_t values[4] = {};
  InprocessText texts[2] = {};
};

class InprocessRingWriter {
 public:
  // False: the memory is no ring of that size. It must stay mapped, and no other process may make it smaller.
  bool Open(void* memory, size_t bytes);
  void Close() { header_ = nullptr; }

  // Any thread. Without room the record is counted as lost.
  void Write(const InprocessMessage& message);
  // From now on the agent knows that the library runs.
  void SayThatItRuns();
  // Any thread. As the header's `left_out`.
  void CountLeftOut(uint64_t methods);

 private:
  // The record's place in `position`. False: there is no room, or other threads were faster too often.
  bool Reserve(uint32_t bytes, uint64_t& position);
  void Publish(uint64_t position, uint32_t bytes, InprocessKind kind);

  InprocessRingHeader* header_ = nullptr;
  unsigned char* data_ = nullptr;
  uint64_t capacity_ = 0;  // our own copy: that of the header may change
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_INPROCESS_RING_WRITER_H_
