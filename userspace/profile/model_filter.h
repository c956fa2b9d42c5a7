// A part of a profile: some samples, or stacks without some frames. The same for recordings and for files.
#ifndef CLRSAMPLER_PROFILE_MODEL_FILTER_H_
#define CLRSAMPLER_PROFILE_MODEL_FILTER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

// A sample that is kept passes all of them. Expressions are RE2's (linear in the names, whatever these are) and match
// anywhere in a name. Frames are matched by ModelFrame::name.
struct ProfileFilter {
  std::optional<std::string> focus;   // only stacks with such a frame
  std::optional<std::string> ignore;  // only stacks without such a frame
  std::optional<std::string> thread;  // a thread id, or an expression for names of threads
  std::optional<uint64_t> from_ns;    // since the start of the recording; samples without a time are left out then
  std::optional<uint64_t> to_ns;      // this time itself is out
  bool no_kernel = false;             // frames of the kernel go, their samples stay
  bool fold_recursion = false;        // of frames that directly follow one of the same name only the outermost stays

  bool empty() const;
};

// With times, the result is as if only that part had been recorded: start, duration, and times of samples and events
// are the part's. An event or a wait that reaches out of it counts with what lies in it. The account of the run goes:
// it is one of the whole.
//
// InvalidArgument: an expression that is none, or times where the profile has none.
absl::StatusOr<ProfileModel> FilterProfile(ProfileModel model, const ProfileFilter& filter);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_MODEL_FILTER_H_
