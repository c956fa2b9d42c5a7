#include "unwind/raw_stack.h"

#include <cstddef>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "unwind/frame_chain.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxPushed = 3;  // words, by the trampoline: arch/x86/kernel/uprobes.c, uretprobe_trampoline_entry

}  // namespace

absl::StatusOr<RawStack> RawStack::Parse(std::span<const std::byte> record) {
  RawStack stack;
  if (record.size() < sizeof stack.sample_) return absl::DataLossError("sample record shorter than its header");
  std::memcpy(&stack.sample_, record.data(), sizeof stack.sample_);
  const wire_cpu_sample& sample = stack.sample_;
  constexpr size_t kSnapshotWords = sizeof(wire_code_snapshot) / sizeof(uint64_t);
  constexpr size_t kReturnWords = sizeof(wire_replaced_return) / sizeof(uint64_t);
  const uint64_t returns = sample.flags >> WIRE_SAMPLE_RETURNS_SHIFT & WIRE_SAMPLE_RETURNS_MASK;
  constexpr size_t kAsyncWords = sizeof(wire_async_object) / sizeof(uint64_t);
  const uint64_t async_objects = sample.flags >> WIRE_SAMPLE_ASYNC_SHIFT & WIRE_SAMPLE_ASYNC_MASK;
  constexpr size_t kTraceWords = sizeof(wire_trace_context) / sizeof(uint64_t);
  const bool has_trace = (sample.flags & WIRE_SAMPLE_TRACE) != 0;
  const uint64_t words = uint64_t{sample.kernel_frames} + sample.user_words +
                         uint64_t{sample.snapshots} * kSnapshotWords + returns * kReturnWords +
                         async_objects * kAsyncWords + (has_trace ? kTraceWords : 0);
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
  static_assert(alignof(wire_code_snapshot) == alignof(uint64_t));
  stack.snapshots_ = {
      reinterpret_cast<const wire_code_snapshot*>(payload_words + sample.kernel_frames + sample.user_words),
      sample.snapshots};
  static_assert(alignof(wire_replaced_return) == alignof(uint64_t));
  stack.returns_ = {reinterpret_cast<const wire_replaced_return*>(stack.snapshots_.data() + sample.snapshots), returns};

  static_assert(alignof(wire_async_object) == alignof(uint64_t));
  stack.async_objects_ = {reinterpret_cast<const wire_async_object*>(stack.returns_.data() + returns), async_objects};

  if (has_trace) {
    stack.trace_ = reinterpret_cast<const wire_trace_context*>(stack.async_objects_.data() + async_objects);
  }
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

void RestoreReturnAddresses(std::vector<uint64_t>& record, bool in_trampoline,
                            absl::FunctionRef<bool(uint64_t)> may_be_trampoline) {
  const absl::StatusOr<RawStack> stack = RawStack::Parse(std::as_bytes(std::span<const uint64_t>(record)));
  if (!stack.ok() || stack->replaced_returns().empty()) return;
  const auto place = [&](std::span<const uint64_t> words) { return static_cast<size_t>(words.data() - record.data()); };
  const auto restore = [&](uint64_t begin, std::span<const uint64_t> words) {
    for (const wire_replaced_return& replaced : stack->replaced_returns()) {
      const uint64_t offset = replaced.at - begin;
      if (offset % sizeof(uint64_t) != 0 || offset / sizeof(uint64_t) >= words.size()) continue;
      uint64_t& word = record[place(words) + offset / sizeof(uint64_t)];
      if (may_be_trampoline(word)) word = replaced.address;
    }
  };
  wire_cpu_sample sample = stack->sample();
  const wire_replaced_return innermost = stack->replaced_returns()[0];
  const uint64_t returned_sp = innermost.at + sizeof(uint64_t);
  const size_t pushed = sample.sp <= returned_sp ? (returned_sp - sample.sp) / sizeof(uint64_t) : kMaxPushed + 1;
  // The address is already in place: the kernel is about to leave the trampoline.
  const bool returned = pushed <= kMaxPushed && (in_trampoline || sample.ip == innermost.address ||
                                                 (sample.sp == returned_sp && may_be_trampoline(sample.ip)));
  uint64_t next = sample.sp;
  std::optional<size_t> first_words;  // where the word is that tells how many come from sp upwards
  const std::span<const uint64_t> tail = stack->ForEachFrame([&](const RawStack::Frame& frame) {
    if (!first_words) first_words = place(frame.gap) - 1;
    restore(frame.gap_address, frame.gap);
    restore(frame.frame_address, {frame.gap.data() + frame.gap.size(), 2});
    next = frame.frame_address + 2 * sizeof(uint64_t);
  });
  if (!tail.empty()) {
    if (!first_words) first_words = place(tail) - 1;
    restore(next, tail);
  }
  if (!returned) return;
  sample.ip = innermost.address;
  if (pushed > 0 && first_words && (record[*first_words] >> WIRE_GAP_SHIFT & WIRE_GAP_MASK) >= pushed) {
    sample.sp = returned_sp;
    sample.user_words -= static_cast<uint32_t>(pushed);
    sample.header.size -= static_cast<uint32_t>(pushed * sizeof(uint64_t));
    record[*first_words] -= static_cast<uint64_t>(pushed) << WIRE_GAP_SHIFT;
    const auto at = record.begin() + static_cast<std::ptrdiff_t>(*first_words) + 1;
    record.erase(at, at + static_cast<std::ptrdiff_t>(pushed));
  }
  std::memcpy(record.data(), &sample, sizeof sample);
}

void RestoreLinkRegisters(std::vector<uint64_t>& record, absl::FunctionRef<bool(uint64_t)> is_trampoline) {
  const absl::StatusOr<RawStack> stack = RawStack::Parse(std::as_bytes(std::span<const uint64_t>(record)));
  if (!stack.ok() || stack->replaced_returns().empty()) return;
  const auto is_replaced = [&](uint64_t address) { return is_trampoline(address & kUserAddressMask); };
  stack->ForEachFrame([&](const RawStack::Frame& frame) {
    if (!is_replaced(frame.return_address)) return;
    const wire_replaced_return* call = nullptr;
    for (const wire_replaced_return& replaced : stack->replaced_returns()) {
      if (replaced.at > frame.frame_address && (call == nullptr || replaced.at < call->at)) call = &replaced;
    }
    if (call == nullptr) return;
    const size_t gap = static_cast<size_t>(frame.gap.data() - record.data());
    record[gap + frame.gap.size() + 1] = call->address;
  });
  wire_cpu_sample sample = stack->sample();
  const uint64_t innermost = stack->replaced_returns()[0].address;
  if (is_replaced(sample.lr)) sample.lr = innermost;
  if (is_replaced(sample.ip)) sample.ip = innermost;
  std::memcpy(record.data(), &sample, sizeof sample);
}

}  // namespace clrsampler
