#include "profile/account.h"

namespace clrsampler {

void Account::CountFrame(const Frame& frame, uint64_t times) {
  FrameCounts* counts = nullptr;
  switch (frame.kind) {
    case FrameKind::kKernel:
      counts = &kernel;
      break;
    case FrameKind::kNative:
      counts = &native;
      break;
    case FrameKind::kJit:
    case FrameKind::kR2r:
    case FrameKind::kAot:
      counts = &managed;
      break;
    case FrameKind::kMark:
    case FrameKind::kType:
      marks[frame.text] += times;
      return;
    case FrameKind::kRole:
      // The compiled methods are many, and are counted elsewhere.
      roles[frame.tier.empty() ? frame.text : "[jit]"] += times;
      return;
  }
  if (frame.named()) {
    counts->named += times;
  } else {
    counts->unnamed += times;
    unnamed_reasons[frame.text] += times;
  }
  if (frame.place.line != 0) (counts == &native ? native_frames_with_line : frames_with_line) += times;
  frames_by_source[static_cast<size_t>(frame.source)] += times;
}

}  // namespace clrsampler
