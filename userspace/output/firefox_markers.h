// Markers of a lane in the Firefox Profiler: events beside its samples.
#ifndef CLRSAMPLER_OUTPUT_FIREFOX_MARKERS_H_
#define CLRSAMPLER_OUTPUT_FIREFOX_MARKERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"
#include "output/thread_lanes.h"
#include "profile/lane_category.h"

namespace clrsampler {

// Small, since a profile may have one for each of its samples. Texts are made as they are written.
struct FirefoxMarker {
  uint8_t name = 0;  // of MarkerNames(): viewers draw a row for each
  LaneCategory category = LaneCategory::kOther;
  StringIndex what = 0, event_detail = 0;  // of the model
  uint64_t amount = 0;                     // waits: nanoseconds if they are more than the duration; bytes; exceptions
  uint64_t begin_ns = 0;
  uint64_t duration_ns = 0;  // 0: a moment
};

// "pause", "collection", "compilation", each kind of wait, "allocation", "exception"
const std::vector<absl::string_view>& MarkerNames();
// The same, with one "wait" for all kinds.
const std::vector<absl::string_view>& MarkerTypes();

absl::string_view TypeOf(const FirefoxMarker& marker);  // of MarkerTypes(): the schema of its data
std::string DetailOf(const ProfileModel& model, const FirefoxMarker& marker);

// In the order of their times:
//   the lane's events        what: their name; detail: theirs
//   waits of a profile       what: the innermost managed method; detail: "stands for 12.0 ms" of a sample that stands
//   for of waits                 other waits, too samples of a profile of  what: the type; detail: "24 bytes", and "3
//   times" where a sample is several allocations, exceptions
// Samples without a time have none.
std::vector<FirefoxMarker> MarkersOfLane(const ProfileModel& model, const ThreadLanes& lanes, const ThreadLane& lane);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_FIREFOX_MARKERS_H_
