#include "profile/lane_category.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace clrsampler {

absl::string_view LaneCategoryText(LaneCategory category) {
  switch (category) {
    case LaneCategory::kOther:
      return "Other";
    case LaneCategory::kManaged:
      return ".NET";
    case LaneCategory::kPrecompiled:
      return "precompiled .NET";
    case LaneCategory::kNative:
      return "native";
    case LaneCategory::kKernel:
      return "kernel";
    case LaneCategory::kCollection:
      return "garbage collection";
    case LaneCategory::kCompilation:
      return "JIT compiler";
    case LaneCategory::kWaiting:
      return "waiting";
    case LaneCategory::kIdle:
      return "idle";
  }
  return "Other";
}

bool IsWait(LaneCategory category) { return category == LaneCategory::kWaiting || category == LaneCategory::kIdle; }

std::optional<LaneCategory> LaneCategoryOf(ModelFrameKind kind, absl::string_view name) {
  switch (kind) {
    case ModelFrameKind::kKernel:
      return LaneCategory::kKernel;
    case ModelFrameKind::kNative:
      return LaneCategory::kNative;
    case ModelFrameKind::kJit:
      return LaneCategory::kManaged;
    case ModelFrameKind::kR2r:
    case ModelFrameKind::kAot:
      return LaneCategory::kPrecompiled;
    case ModelFrameKind::kRole:
      if (absl::StartsWith(name, "[gc ") || absl::StartsWith(name, "[suspending")) return LaneCategory::kCollection;
      if (absl::StartsWith(name, "[jit")) return LaneCategory::kCompilation;
      return std::nullopt;
    case ModelFrameKind::kMark: {
      if (absl::StartsWith(name, "[waits ")) return LaneCategory::kWaiting;  // the sum of short ones
      const std::optional<WaitKind> wait = WaitKindOfMark(kind, name);
      if (!wait) return std::nullopt;
      return *wait == WaitKind::kIdle ? LaneCategory::kIdle : LaneCategory::kWaiting;
    }
    case ModelFrameKind::kUnknown:
      return LaneCategory::kOther;
    case ModelFrameKind::kInlined:
    case ModelFrameKind::kType:
      break;
  }
  return std::nullopt;
}

std::optional<WaitKind> WaitKindOfMark(ModelFrameKind kind, absl::string_view name) {
  if (kind != ModelFrameKind::kMark) return std::nullopt;
  if (!absl::ConsumePrefix(&name, "[") || !absl::ConsumeSuffix(&name, "]")) return std::nullopt;
  return WaitKindOf(name);
}

}  // namespace clrsampler
