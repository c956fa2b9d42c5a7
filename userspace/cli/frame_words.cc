#include "cli/frame_words.h"

namespace clrsampler {

const char* FrameKindText(const Frame& frame) {
  if (frame.kind == FrameKind::kMark) return "mark";
  if (frame.kind == FrameKind::kRole) return "role";
  if (frame.kind == FrameKind::kType) return "type";
  if (!frame.named()) return "none";
  switch (frame.kind) {
    case FrameKind::kKernel:
      return "kernel";
    case FrameKind::kNative:
      return "native";
    case FrameKind::kJit:
      return frame.text.rfind("stub ", 0) == 0 || frame.text.rfind("[stub", 0) == 0 ? "stub" : "jit";
    case FrameKind::kR2r:
      return "r2r";
    case FrameKind::kAot:
      return "aot";
    case FrameKind::kMark:
    case FrameKind::kType:
    case FrameKind::kRole:
      break;
  }
  return "none";
}

const char* FrameOriginText(FrameOrigin origin) {
  switch (origin) {
    case FrameOrigin::kSampled:
      return "sampled";
    case FrameOrigin::kChain:
      return "chain";
    case FrameOrigin::kUnwindInfo:
      return "unwind_info";
    case FrameOrigin::kTable:
      return "table";
    case FrameOrigin::kStub:
      return "stub";
    case FrameOrigin::kFallback:
      return "fallback";
  }
  return "";
}

}  // namespace clrsampler
