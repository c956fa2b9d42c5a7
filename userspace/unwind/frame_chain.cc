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

std::optional<StackPart> StackPartOf(const UserStack& stack, size_t frame) {
  const std::vector<UserFrame>& frames = stack.frames;
  const size_t caller = frame + 1;
  if (caller >= frames.size() || frames[frame].sp == 0) return std::nullopt;
  // The next but one has the end of the caller's record for its place.
  const size_t last = frames[caller].sp_exact ? caller : caller + 1;
  if (last >= frames.size() || frames[last].sp <= frames[frame].sp) return std::nullopt;
  return StackPart{frames[frame].sp, frames[last].sp};
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
