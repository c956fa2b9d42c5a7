#include "unwind/raw_stack.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace clrsampler {

absl::StatusOr<RawStack> RawStack::Parse(std::span<const std::byte> record) {
  RawStack stack;
  if (record.size() < sizeof stack.sample_) return absl::DataLossError("sample record shorter than its header");
  std::memcpy(&stack.sample_, record.data(), sizeof stack.sample_);
  const wire_cpu_sample& sample = stack.sample_;
  constexpr size_t kWitnessWords = sizeof(wire_code_witness) / sizeof(uint64_t);
  const uint64_t words =
      uint64_t{sample.kernel_frames} + sample.user_words + uint64_t{sample.witnesses} * kWitnessWords;
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

}  // namespace clrsampler
