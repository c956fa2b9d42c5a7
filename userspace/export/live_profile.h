// Profiles of the next seconds: collects the windows that cover them as they come.
//
// One thread of its own takes the selected samples out of each window, so that no window is kept for it and the
// windows' maker is never held up. Each has the limits of a profile out of the store, and its client pays for it.
#ifndef CLRSAMPLER_EXPORT_LIVE_PROFILE_H_
#define CLRSAMPLER_EXPORT_LIVE_PROFILE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "export/recent_windows.h"
#include "export/window_profile.h"
#include "formats/profile/profile_model.h"
#include "profile/sample_sums.h"
#include "store/history.h"

namespace clrsampler {

class LiveProfiles {
 public:
  using Done = std::function<void(absl::StatusOr<ProfileModel>)>;
  // Does the work, and has its CPU time paid for.
  using Pay = std::function<void(absl::FunctionRef<void()> work)>;
  static constexpr size_t kMostWaiting = 8;

  // `windows` is borrowed, and must not be closed and gone before this. `want_cut` asks the maker of windows to end one
  // at that time, so that nobody waits for the rest of it; it may be empty.
  LiveProfiles(RecentWindows& windows, std::function<void(uint64_t unix_ns)> want_cut,
               const SampleSums::Limits& limits = {});
  // Callers that wait are told Unavailable.
  ~LiveProfiles();

  // The time of `selection` begins at `now_unix_ns`, where another window begins then if `view` is not that of CPU
  // time. `pay` and `done` are called on the thread of this object. Unavailable: too many wait already.
  absl::Status Begin(const HistorySelection& selection, ProfileView view, uint64_t now_unix_ns, Pay pay, Done done);

 private:
  struct Waiting {
    std::unique_ptr<WindowProfile> profile;
    uint64_t from_unix_ns, to_unix_ns;
    std::chrono::steady_clock::time_point give_up;
    Pay pay;
    Done done;
    uint64_t seen = 0;     // number of the last window that was looked at
    absl::Status failure;  // of the windows so far
    bool complete = false;
  };
  void Run();
  // Takes in what has come, up to the window that makes it complete.
  static void Take(Waiting& waiting, const std::vector<SharedWindow>& windows);
  static absl::StatusOr<ProfileModel> Build(Waiting& waiting);

  RecentWindows& windows_;
  const std::function<void(uint64_t)> want_cut_;
  const SampleSums::Limits limits_;
  // Those who ask, and the thread.
  std::mutex mutex_;
  std::list<Waiting> begun_;  // not yet looked at
  size_t waiting_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_LIVE_PROFILE_H_
