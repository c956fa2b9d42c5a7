#include "profile/window_part.h"

namespace clrsampler {

WindowPart WindowPartOf(ProfileView view) {
  switch (view) {
    case ProfileView::kJit:
      return WindowPart::kJit;
    case ProfileView::kSuspendDelay:
      return WindowPart::kSuspendDelay;
    case ProfileView::kAllocations:
      return WindowPart::kAllocations;
    case ProfileView::kOffCpu:
      return WindowPart::kWaits;
    case ProfileView::kCpu:
    case ProfileView::kPause:
    case ProfileView::kExceptions:
    case ProfileView::kContention:
    case ProfileView::kWall:
      break;
  }
  return WindowPart::kCpu;
}

}  // namespace clrsampler
