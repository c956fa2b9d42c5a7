#include "unwind/frame_chain.h"

namespace clrsampler {
namespace {

// Pointer-authentication bits of arm64 return addresses; user addresses have at most 48 bits on both architectures
// unless a program asks mmap for more, which no runtime that we know does.
constexpr uint64_t kUserAddressMask = 0x0000'ffff'ffff'ffff;

StackEnd EndOf(uint16_t stop) {
  switch (stop) {
    case WIRE_STOP_NONE:
    case WIRE_STOP_END:
      return StackEnd::kComplete;
    case WIRE_STOP_MAX_FRAMES:
    case WIRE_STOP_MAX_WORDS:
      return StackEnd::kTruncated;
    default:
      return StackEnd::kBroken;
  }
}

}  // namespace

void WalkFrameChain(const RawStack& stack, UserStack& out) {
  out.frames.clear();
  const wire_cpu_sample& sample = stack.sample();
  out.end = EndOf(sample.stop);
  if ((sample.flags & WIRE_SAMPLE_KTHREAD) != 0 || sample.ip == 0) return;
  out.frames.push_back({sample.ip, sample.ip});
  stack.ForEachFrame([&](const RawStack::Frame& frame) {
    const uint64_t address = frame.return_address & kUserAddressMask;
    if (address != 0) out.frames.push_back({address, address - 1});
  });
}

}  // namespace clrsampler
