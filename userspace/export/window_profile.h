// Parts of windows -> one profile: the samples of some processes and threads, of a stretch of time, of a view.
//
// Pure. Used for profiles of the next seconds and wherever the store is not asked.
#ifndef CLRSAMPLER_EXPORT_WINDOW_PROFILE_H_
#define CLRSAMPLER_EXPORT_WINDOW_PROFILE_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"
#include "profile/window.h"
#include "store/history.h"

namespace clrsampler {

// Whether the process is meant; HistorySelection's times and thread are not looked at.
bool Selects(const HistorySelection& selection, const WindowProcess& process);

// Whether a thread of that id and name is meant.
bool SelectsThread(const HistorySelection& selection, uint32_t tid, absl::string_view name);
// For each thread of one of the window's profiles whether it is meant, and so is its process.
std::vector<bool> SelectedThreads(const Window& window, const ProfileModel& model, const HistorySelection& selection);

class WindowProfile {
 public:
  // Samples without times that are equal are one, so that memory grows with the distinct stacks only. `selection` is
  // copied; its times cut to the nanosecond.
  WindowProfile(const HistorySelection& selection, ProfileView view, bool keep_times);

  void Add(const Window& window);
  // The wall clock was set by so much: the rest of the time is looked for there.
  void ShiftClock(int64_t jump_ns);
  // The samples so far. OutOfRange and the like: the builder's limits.
  absl::StatusOr<ProfileModel> Build() &&;

 private:
  using Row = std::tuple<ThreadIndex, NodeIndex, SampleState>;

  HistorySelection selection_;
  const ProfileView view_;
  const bool keep_times_;
  ProfileModelBuilder builder_;
  absl::flat_hash_map<Row, uint64_t> weights_;
  std::vector<TimeStretch> recorded_;  // the parts of the windows that were asked for
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_WINDOW_PROFILE_H_
