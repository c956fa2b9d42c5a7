// A profile over time: a lane for each thread, with its samples in the order of their times and what happened there.
#ifndef CLRSAMPLER_OUTPUT_THREAD_LANES_H_
#define CLRSAMPLER_OUTPUT_THREAD_LANES_H_

#include <cstdint>
#include <vector>

#include "formats/profile/profile_model.h"

namespace clrsampler {

struct ThreadLane {
  ThreadIndex thread = 0;
  std::vector<uint32_t> rows;  // of samples
  std::vector<const ModelEvent*> events;
};

class ThreadLanes {
 public:
  // The model is borrowed.
  explicit ThreadLanes(const ProfileModel& model);

  // The lanes of threads that have samples or events. The main thread of a process comes first, and has what concerns
  // all of its threads.
  const std::vector<ThreadLane>& lanes() const { return lanes_; }
  uint64_t end_ns() const { return end_ns_; }  // of the recording
  // Samples without a time stand at the end of the recording.
  uint64_t TimeOf(uint32_t row) const;

 private:
  const ProfileModel& model_;
  uint64_t end_ns_;
  std::vector<ThreadLane> lanes_;
};

// Whether it is the main thread of its process, or all threads together.
bool IsMainThread(const ModelThread& thread);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_THREAD_LANES_H_
