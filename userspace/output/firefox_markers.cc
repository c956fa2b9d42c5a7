#include "output/firefox_markers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "output/durations.h"
#include "output/lane_waits.h"
#include "profile/wait_kind.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kWait = "wait", kAllocation = "allocation", kException = "exception";
constexpr uint8_t kFirstWaitName = kModelEventKindCount, kAllocationName = kFirstWaitName + kWaitKindCount,
                  kExceptionName = kAllocationName + 1;

FirefoxMarker OfEvent(const ModelEvent& event) {
  return {
      .name = static_cast<uint8_t>(event.kind),
      .category = event.kind == ModelEventKind::kCompilation ? LaneCategory::kCompilation : LaneCategory::kCollection,
      .what = event.name,
      .event_detail = event.detail,
      .begin_ns = event.time_ns,
      .duration_ns = event.duration_ns};
}

// The name of the innermost frame of these kinds; 0: there is none.
template <typename Wanted>
StringIndex Innermost(const ProfileModel& model, uint32_t row, Wanted wanted) {
  for (NodeIndex node = model.samples.stack[row]; node != kRootNode; node = model.nodes[node].parent) {
    const ModelFrame& frame = model.frame_of(node);
    if (wanted(frame)) return frame.name;
  }
  return 0;
}

// Frames of the waker stand behind the mark of the wait, and are not meant.
StringIndex MethodOf(const ProfileModel& model, uint32_t row) {
  bool in_wait = false;
  return Innermost(model, row, [&](const ModelFrame& frame) {
    if (WaitKindOfMark(frame.kind, model.text(frame.name))) in_wait = true;
    return in_wait && (frame.kind == ModelFrameKind::kJit || frame.kind == ModelFrameKind::kR2r ||
                       frame.kind == ModelFrameKind::kAot);
  });
}

FirefoxMarker OfWait(const ProfileModel& model, const LaneWait& wait) {
  FirefoxMarker marker{.name = static_cast<uint8_t>(kFirstWaitName + static_cast<size_t>(wait.kind))};
  marker.category = wait.kind == WaitKind::kIdle ? LaneCategory::kIdle : LaneCategory::kWaiting;
  marker.what = MethodOf(model, wait.row);
  marker.begin_ns = wait.begin_ns;
  marker.duration_ns = wait.end_ns - wait.begin_ns;
  if (wait.waited_ns > marker.duration_ns) marker.amount = wait.waited_ns;
  return marker;
}

FirefoxMarker OfTypedSample(const ProfileModel& model, uint32_t row, uint64_t time_ns) {
  const bool allocation = model.meta.view == ProfileView::kAllocations;
  FirefoxMarker marker{.name = allocation ? kAllocationName : kExceptionName, .category = LaneCategory::kManaged};
  marker.what = Innermost(model, row, [](const ModelFrame& frame) { return frame.kind == ModelFrameKind::kType; });
  marker.amount = model.samples.weight_of(row);
  marker.begin_ns = time_ns;
  return marker;
}

}  // namespace

const std::vector<absl::string_view>& MarkerNames() {
  static const auto* names = [] {
    auto* words = new std::vector<absl::string_view>();
    for (int i = 0; i < kModelEventKindCount; ++i) words->push_back(ModelEventKindText(static_cast<ModelEventKind>(i)));
    for (int i = 0; i < kWaitKindCount; ++i) words->push_back(WaitKindText(static_cast<WaitKind>(i)));
    words->insert(words->end(), {kAllocation, kException});
    return words;
  }();
  return *names;
}

const std::vector<absl::string_view>& MarkerTypes() {
  static const auto* types = [] {
    auto* words =
        new std::vector<absl::string_view>(MarkerNames().begin(), MarkerNames().begin() + kModelEventKindCount);
    words->insert(words->end(), {kWait, kAllocation, kException});
    return words;
  }();
  return *types;
}

absl::string_view TypeOf(const FirefoxMarker& marker) {
  const bool wait = marker.name >= kFirstWaitName && marker.name < kAllocationName;
  return wait ? kWait : MarkerNames()[marker.name];
}

std::string DetailOf(const ProfileModel& model, const FirefoxMarker& marker) {
  if (marker.name < kFirstWaitName) return std::string(model.text(marker.event_detail));
  if (marker.name == kAllocationName) return absl::StrCat(marker.amount, " bytes");
  if (marker.name == kExceptionName) return marker.amount > 1 ? absl::StrCat(marker.amount, " times") : "";
  return marker.amount > 0 ? absl::StrCat("stands for ", DurationText(marker.amount)) : "";
}

std::vector<FirefoxMarker> MarkersOfLane(const ProfileModel& model, const ThreadLanes& lanes, const ThreadLane& lane) {
  std::vector<FirefoxMarker> markers;
  for (const ModelEvent* event : lane.events) markers.push_back(OfEvent(*event));
  for (const LaneWait& wait : WaitsOfLane(model, lanes, lane)) markers.push_back(OfWait(model, wait));
  if (model.meta.view == ProfileView::kAllocations || model.meta.view == ProfileView::kExceptions) {
    for (const uint32_t row : lane.rows) {
      if (model.samples.time_of(row) != kNoTime) markers.push_back(OfTypedSample(model, row, lanes.TimeOf(row)));
    }
  }
  std::stable_sort(markers.begin(), markers.end(),
                   [](const FirefoxMarker& a, const FirefoxMarker& b) { return a.begin_ns < b.begin_ns; });
  return markers;
}

}  // namespace clrsampler
