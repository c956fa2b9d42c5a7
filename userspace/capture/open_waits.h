// Judges a look at all threads: which were at what, as of a moment just past, and whose stacks are taken.
//
// Pure. A thread that has not run since the look before has the stack that it had then, so most threads of a host cost
// a look next to nothing.
#ifndef CLRSAMPLER_CAPTURE_OPEN_WAITS_H_
#define CLRSAMPLER_CAPTURE_OPEN_WAITS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "clrsampler/wire.h"
#include "os/clock.h"

namespace clrsampler {

// With WIRE_WAIT_OPEN, in wire_wait::flags: the thread has not run since the look before, and has the stack of then.
inline constexpr uint32_t kWaitUnmoved = 1u << 31;

struct OpenWaitQuery {
  MonotonicTime as_of;
  size_t most_stacks = 0;                 // that are read; of more waits those that have lasted longest
  std::function<bool(uint32_t)> selects;  // whether a process is looked at; empty: all are
};

// Takes back what has passed since `time`. Where a thread has changed its state meanwhile, the rest comes off its CPU
// time, and then off its waits: its sums come to its life until then. False: it did not live yet.
bool TakeBack(wire_open_wait& open, MonotonicTime time);

// The same for a last look: no end of a wait follows, so that short parts count now.
bool EndAt(wire_open_wait& open, MonotonicTime time);

// Threads whose stacks have been taken, with how often they had left a CPU or got one by then.
class SeenStacks {
 public:
  // Judges one look, after TakeBack. Sets kWaitUnmoved, and gives the indexes of those whose stacks are to be read, the
  // longest wait first. The wait of one beyond `most` has no stack.
  std::vector<size_t> Choose(std::span<wire_open_wait> threads, size_t most);
  // The stack of a chosen one has been read.
  void Take(const wire_open_wait& open);
  // Threads that the look has not met are forgotten.
  void EndLook();

 private:
  struct Seen {
    uint64_t process_start_ns = 0;
    uint64_t switches = 0;
    bool met = false;
  };
  absl::flat_hash_map<uint32_t, Seen> seen_;  // by tid
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_OPEN_WAITS_H_
