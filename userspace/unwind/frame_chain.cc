#include "unwind/frame_chain.h"

namespace clrsampler {

absl::string_view MarkText(FrameDoubt doubt) {
  switch (doubt) {
    case FrameDoubt::kNone:
      break;
    case FrameDoubt::kCallerMayBeMissing:
      return "[caller may be missing]";
    case FrameDoubt::kContradiction:
      return "[unwind data contradicted: by frame pointer from here]";
  }
  return "";
}

StackEnd EndOfStop(uint16_t stop) {
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

void WalkFrameChain(const RawStack& stack, UserStack& out) {
  out.frames.clear();
  const wire_cpu_sample& sample = stack.sample();
  out.end = EndOfStop(sample.stop);
  if ((sample.flags & WIRE_SAMPLE_KTHREAD) != 0 || sample.ip == 0) return;
  out.frames.push_back({sample.ip, sample.ip});
  bool broken = false;
  stack.ForEachFrame([&](const RawStack::Frame& frame) {
    broken |= frame.resumed;
    if (broken || frame.words_only) return;
    const uint64_t address = frame.return_address & kUserAddressMask;
    if (address != 0) out.frames.push_back({address, address - 1, FrameOrigin::kChain});
  });
  if (broken) out.end = StackEnd::kBroken;
}

}  // namespace clrsampler
