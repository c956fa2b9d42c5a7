// Tells which of a window's profiles a view shows.
#ifndef CLRSAMPLER_PROFILE_WINDOW_PART_H_
#define CLRSAMPLER_PROFILE_WINDOW_PART_H_

#include <cstdint>

#include "formats/profile/profile_model.h"

namespace clrsampler {

enum class WindowPart : uint8_t { kCpu, kJit, kSuspendDelay, kAllocations, kWaits };

// Windows have no exceptions, contention or wall time: such a view shows CPU time.
WindowPart WindowPartOf(ProfileView view);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_WINDOW_PART_H_
