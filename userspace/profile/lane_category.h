// The kind of work that a frame is, for formats that colour lanes over time.
#ifndef CLRSAMPLER_PROFILE_LANE_CATEGORY_H_
#define CLRSAMPLER_PROFILE_LANE_CATEGORY_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"
#include "profile/wait_kind.h"

namespace clrsampler {

enum class LaneCategory : uint8_t {
  kOther,
  kManaged,      // compiled in the process
  kPrecompiled,  // ready-to-run, or NativeAOT
  kNative,
  kKernel,
  kCollection,   // the runtime collects garbage, or stops threads to do so
  kCompilation,  // the runtime compiles methods
  kWaiting,
  kIdle,  // waits for work to come
};
inline constexpr int kLaneCategoryCount = 9;

// "Other", ".NET", "precompiled .NET", "native", "kernel", "garbage collection", "JIT compiler", "waiting", "idle"
absl::string_view LaneCategoryText(LaneCategory category);

// Whether the thread does no work. Frames behind such a frame are those of the waker.
bool IsWait(LaneCategory category);

// nullopt: the frame is a word about its caller, and belongs to whatever that is.
std::optional<LaneCategory> LaneCategoryOf(ModelFrameKind kind, absl::string_view name);

// The kind of wait that the mark "[task wait]" names; nullopt: it is no such mark, or says more.
std::optional<WaitKind> WaitKindOfMark(ModelFrameKind kind, absl::string_view name);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_LANE_CATEGORY_H_
