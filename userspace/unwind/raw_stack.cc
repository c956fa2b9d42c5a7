#include "unwind/raw_stack.h"

#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace clrsampler {

absl::StatusOr<RawStack> RawStack::Parse(std::span<const std::byte> record) {
  RawStack stack;
  if (record.size() < sizeof stack.sample_) return absl::DataLossError("sample record shorter than its header");
  std::memcpy(&stack.sample_, record.data(), sizeof stack.sample_);
  const wire_cpu_sample& sample = stack.sample_;
  constexpr size_t kWitnessWords = sizeof(wire_code_witness) / sizeof(uint64_t);
  constexpr size_t kReturnWords = sizeof(wire_replaced_return) / sizeof(uint64_t);
  const uint64_t returns = sample.flags >> WIRE_SAMPLE_RETURNS_SHIFT & WIRE_SAMPLE_RETURNS_MASK;
  const uint64_t words = uint64_t{sample.kernel_frames} + sample.user_words +
                         uint64_t{sample.witnesses} * kWitnessWords + returns * kReturnWords;
  if (record.size() < sizeof sample + words * sizeof(uint64_t)) {
    return absl::DataLossError(absl::StrCat("sample record of ", record.size(), " bytes announces ", words, " words"));
  }
  const std::byte* payload = record.data() + sizeof sample;
  if (reinterpret_cast<uintptr_t>(payload) % alignof(uint64_t) != 0) {
    return absl::InvalidArgumentError("sample record is not aligned to 8 bytes");
  }
  const auto* payload_words = reinterpret_cast<const uint64_t*>(payload);
  stack.kernel_ = {payload_words, sample.kernel_frames};
  stack.user_ = {payload_words + sample.kernel_frames, sample.user_words};
  static_assert(alignof(wire_code_witness) == alignof(uint64_t));
  stack.witnesses_ = {
      reinterpret_cast<const wire_code_witness*>(payload_words + sample.kernel_frames + sample.user_words),
      sample.witnesses};
  static_assert(alignof(wire_replaced_return) == alignof(uint64_t));
  stack.returns_ = {reinterpret_cast<const wire_replaced_return*>(stack.witnesses_.data() + sample.witnesses), returns};

  stack.bytes_ = record.first(sizeof sample + words * sizeof(uint64_t));

  // Walk the steps once, so that ForEachFrame needs no checks.
  size_t at = 0;
  for (uint32_t i = 0; i < sample.user_frames; ++i) {
    if (at >= stack.user_.size()) return absl::DataLossError("sample record with fewer steps than announced");
    const size_t needed = GapWords(stack.user_[at]) + 3;
    if (stack.user_.size() - at < needed) return absl::DataLossError("sample record with a step cut short");
    at += needed;
  }
  if (at < stack.user_.size() && stack.user_.size() - at - 1 < GapWords(stack.user_[at])) {
    return absl::DataLossError("sample record with a tail cut short");
  }
  return stack;
}

void RestoreReturnAddresses(std::span<uint64_t> record) {
  const absl::StatusOr<RawStack> stack = RawStack::Parse(std::as_bytes(record));
  if (!stack.ok() || stack->replaced_returns().empty()) return;
  const auto restore = [&](uint64_t begin, std::span<const uint64_t> words) {
    for (const wire_replaced_return& replaced : stack->replaced_returns()) {
      const uint64_t offset = replaced.at - begin;
      if (offset % sizeof(uint64_t) != 0 || offset / sizeof(uint64_t) >= words.size()) continue;
      record[static_cast<size_t>(words.data() - record.data()) + offset / sizeof(uint64_t)] = replaced.address;
    }
  };
  // The call has returned to the trampoline, which is about to go on where it should have.
  if (const wire_replaced_return& innermost = stack->replaced_returns()[0];
      innermost.at + sizeof(uint64_t) == stack->sample().sp) {
    record[offsetof(wire_cpu_sample, ip) / sizeof(uint64_t)] = innermost.address;
  }
  uint64_t next = stack->sample().sp;
  const std::span<const uint64_t> tail = stack->ForEachFrame([&](const RawStack::Frame& frame) {
    restore(frame.gap_address, frame.gap);
    restore(frame.frame_address, {frame.gap.data() + frame.gap.size(), 2});
    next = frame.frame_address + 2 * sizeof(uint64_t);
  });
  restore(next, tail);
}

}  // namespace clrsampler
