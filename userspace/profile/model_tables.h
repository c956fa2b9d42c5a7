// A profile that was read -> tables as a run has them, for summaries that are made of both. Pure.
#ifndef CLRSAMPLER_PROFILE_MODEL_TABLES_H_
#define CLRSAMPLER_PROFILE_MODEL_TABLES_H_

#include <cstddef>

#include "absl/status/status.h"
#include "formats/profile/profile_model.h"
#include "os/clock.h"
#include "profile/sample_log.h"
#include "profile/stack_table.h"
#include "symbols/frame.h"

namespace clrsampler {

// The bound of all distinct stacks together: 256 MiB of them. A file of a few megabytes may name more.
inline constexpr size_t kMaxTableFrames = size_t{1} << 26;

class ModelTables {
 public:
  // Copies what it needs. ResourceExhausted: the stacks have more than `max_frames` frames together.
  absl::Status Fill(const ProfileModel& model, size_t max_frames = kMaxTableFrames);

  const FrameTable& frames() const { return frames_; }
  const StackTable& stacks() const { return stacks_; }
  const SampleLog& samples() const { return samples_; }  // each row of the model
  MonotonicTime began() const { return {}; }             // times of samples count from here

 private:
  FrameTable frames_;
  StackTable stacks_;
  SampleLog samples_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_MODEL_TABLES_H_
