// A profile over time: a lane for each thread, with its samples in the order of their times and what happened there.
#ifndef CLRSAMPLER_OUTPUT_THREAD_LANES_H_
#define CLRSAMPLER_OUTPUT_THREAD_LANES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "formats/profile/profile_model.h"

namespace clrsampler {

struct ThreadLane {
  ThreadIndex thread = 0;
  std::vector<uint32_t> rows;  // of samples
  std::vector<const ModelEvent*> events;
  bool leads = false;  // stands for its process: it is the first of it, and the only one with this mark
};

class ThreadLanes {
 public:
  // The model is borrowed.
  explicit ThreadLanes(const ProfileModel& model);

  // The lanes of threads that have samples or events. The main thread of a process comes first, and has the events that
  // concern all of its threads.
  const std::vector<ThreadLane>& lanes() const { return lanes_; }
  uint64_t end_ns() const { return end_ns_; }  // of the recording
  // Samples without a time stand at the end of the recording.
  uint64_t TimeOf(uint32_t row) const;

 private:
  const ProfileModel& model_;
  uint64_t end_ns_;
  std::vector<ThreadLane> lanes_;
};

// Processes are told apart by their pids. Processes whose pid is not known have their names in its place.
using ModelProcess = std::pair<uint32_t, StringIndex>;
ModelProcess ProcessOf(const ModelThread& thread);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_THREAD_LANES_H_
