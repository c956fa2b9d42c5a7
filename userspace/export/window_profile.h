// Parts of windows -> one profile: the samples of some processes and threads, of a stretch of time, of a view.
//
// Pure. Used for profiles of the next seconds and wherever the store is not asked.
#ifndef CLRSAMPLER_EXPORT_WINDOW_PROFILE_H_
#define CLRSAMPLER_EXPORT_WINDOW_PROFILE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"
#include "profile/model_copier.h"
#include "profile/sample_sums.h"
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
  // `selection` is copied. Its times cut CPU time to the nanosecond. In the other views events have no times, so
  // windows that begin in its time are taken as a whole, and the profile says how far they reach.
  //
  // Samples without times that are equal are one. They have limits, which those with times don't need: they are no more
  // than those of the windows.
  WindowProfile(const HistorySelection& selection, ProfileView view, bool keep_times,
                const SampleSums::Limits& limits = {});

  // Errors of SampleSums::MakeRoom. Then there is no profile.
  absl::Status Add(const Window& window);
  // The wall clock was set by so much: the rest of the time is looked for there.
  void ShiftClock(int64_t jump_ns);
  // The samples so far. OutOfRange and the like: the builder's limits.
  absl::StatusOr<ProfileModel> Build() &&;

 private:
  // Whether something of the window is meant, which is recorded then.
  bool Record(const Window& window);
  absl::Status AddSample(const ProfileModel& model, ModelSample sample, ModelCopier& copier);

  HistorySelection selection_;
  const ProfileView view_;
  const bool keep_times_;
  ProfileModelBuilder builder_;
  SampleSums sums_;
  std::vector<TimeStretch> recorded_;  // the parts of the windows that are in it
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_WINDOW_PROFILE_H_
