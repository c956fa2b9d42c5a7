// One sample as BPF sent it: registers, the frame-pointer chain and the stack words between its frames.
//
// Layout: include/clrsampler/wire.h. The record comes from our own BPF program, but the words in it are the target's:
// every count is checked against the record's size before it is used.
#ifndef CLRSAMPLER_UNWIND_RAW_STACK_H_
#define CLRSAMPLER_UNWIND_RAW_STACK_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "clrsampler/wire.h"

namespace clrsampler {

// A view; lives as long as the record's bytes.
class RawStack {
 public:
  // One step of the chain.
  struct Frame {
    uint64_t frame_address = 0;     // where {saved frame pointer, return address} lie
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

  // Of transient code that the sample met; in no order.
  std::span<const wire_code_witness> witnesses() const { return witnesses_; }

  // Calls visit(const Frame&) for each step, innermost first, and then gives the tail: the words above the last frame.
  template <typename Visitor>
  std::span<const uint64_t> ForEachFrame(Visitor&& visit) const {
    size_t at = 0;
    for (uint32_t i = 0; i < sample_.user_frames; ++i) {
      const uint64_t head = user_[at];
      const size_t gap_words = GapWords(head);
      visit(Frame{head & WIRE_FRAME_ADDRESS_MASK, user_.subspan(at + 1, gap_words), user_[at + 1 + gap_words],
                  user_[at + 2 + gap_words], (head & WIRE_FRAME_WORDS_ONLY) != 0, (head & WIRE_FRAME_RESUMED) != 0});
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
  std::span<const wire_code_witness> witnesses_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_RAW_STACK_H_
