// One sample as BPF sent it: registers, the frame-pointer chain and the stack words between its frames.
//
// Layout: include/clrsampler/wire.h. The record comes from our own BPF program, but the words in it are the target's:
// every count is checked against the record's size before it is used.
#ifndef CLRSAMPLER_UNWIND_RAW_STACK_H_
#define CLRSAMPLER_UNWIND_RAW_STACK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "clrsampler/wire.h"

namespace clrsampler {

// A view; lives as long as the record's bytes.
class RawStack {
 public:
  // One step of the chain.
  struct Frame {
    uint64_t frame_address = 0;     // where {saved frame pointer, return address} lie
    uint64_t gap_address = 0;       // of the first word of `gap`
    std::span<const uint64_t> gap;  // words from the end of the previous frame upwards; cut when longer than the limit
    uint64_t saved_fp = 0;
    uint64_t return_address = 0;
    bool words_only = false;  // a piece of stack memory and no frame
    bool resumed = false;     // the chain broke below it, and this is where it may go on: no frame until proven
  };

  static absl::StatusOr<RawStack> Parse(std::span<const std::byte> record);

  const wire_cpu_sample& sample() const { return sample_; }
  std::span<const std::byte> bytes() const { return bytes_; }  // the whole record
  // Leaf first. Copies, since records are only 8-byte aligned inside the ring.
  std::span<const uint64_t> kernel_addresses() const { return kernel_; }

  // Snapshots of transient code that the sample met; in no order.
  std::span<const wire_code_snapshot> snapshots() const { return snapshots_; }

  // Where return probes had put their trampoline's address.
  std::span<const wire_replaced_return> replaced_returns() const { return returns_; }

  // The awaiters of what runs, each object once; empty where they were not asked for.
  std::span<const wire_async_object> async_objects() const { return async_objects_; }

  // The ids that the thread published; nullptr: none.
  const wire_trace_context* trace() const { return trace_; }

  // Calls visit(const Frame&) for each step, innermost first, and then gives the tail: the words above the last frame.
  template <typename Visitor>
  std::span<const uint64_t> ForEachFrame(Visitor&& visit) const {
    size_t at = 0;
    uint64_t next = sample_.sp;
    bool after_words_only = false;
    for (uint32_t i = 0; i < sample_.user_frames; ++i) {
      const uint64_t head = user_[at], frame_address = head & WIRE_FRAME_ADDRESS_MASK;
      const size_t gap_words = GapWords(head);
      const bool words_only = (head & WIRE_FRAME_WORDS_ONLY) != 0;
      // Behind a long gap's first words come its last ones.
      if (after_words_only) next = frame_address - gap_words * sizeof(uint64_t);
      visit(Frame{frame_address, next, user_.subspan(at + 1, gap_words), user_[at + 1 + gap_words],
                  user_[at + 2 + gap_words], words_only, (head & WIRE_FRAME_RESUMED) != 0});
      next = frame_address + 2 * sizeof(uint64_t);
      after_words_only = words_only;
      at += gap_words + 3;
    }
    if (at >= user_.size()) return {};
    return user_.subspan(at + 1, GapWords(user_[at]));
  }

 private:
  static size_t GapWords(uint64_t head) { return head >> WIRE_GAP_SHIFT & WIRE_GAP_MASK; }

  wire_cpu_sample sample_{};
  std::span<const std::byte> bytes_;
  std::span<const uint64_t> kernel_;
  std::span<const uint64_t> user_;
  std::span<const wire_code_snapshot> snapshots_;
  std::span<const wire_replaced_return> returns_;
  std::span<const wire_async_object> async_objects_;
  const wire_trace_context* trace_ = nullptr;
};

// Puts the true return addresses of a sample into the words that were copied from its stack. `in_trampoline`: the leaf
// is the trampoline itself, to which the call has returned. Then the leaf becomes the code that it is about to go on
// with, and the words that it has pushed are taken off the stack (from Linux 6.11 on: three registers).
// `may_be_trampoline`: of an address. The kernel also keeps return addresses of calls that were left by longjmp, and
// other words have taken their places. Does nothing to a record that is damaged.
void RestoreReturnAddresses(std::vector<uint64_t>& record, bool in_trampoline,
                            absl::FunctionRef<bool(uint64_t)> may_be_trampoline);

// The same on arm64, where the call has its return address in a register. A function under a return probe finds the
// trampoline's address there, and saves that in its frame record, below the place that sp had at the call.
// `is_trampoline`: of an address without the bits of a signature.
void RestoreLinkRegisters(std::vector<uint64_t>& record, absl::FunctionRef<bool(uint64_t)> is_trampoline);

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_RAW_STACK_H_
