// A Perfetto trace (ui.perfetto.dev, trace_processor): a lane for each thread, over time.
//
// The file is google/perfetto's message Trace, which is its packets one after the other. All of them are of one
// sequence, the first of which clears its state. Samples are StackSamples, which trace_processor reads since v58: the
// only form that has a weight. All other events are TrackEvents.
//
// Times are those of CLOCK_MONOTONIC where the profile knows it, else wall clock time, else those since the start.
// Samples without a time stand at the end of the recording.
#ifndef CLRSAMPLER_OUTPUT_PERFETTO_H_
#define CLRSAMPLER_OUTPUT_PERFETTO_H_

#include "output/profile_writer.h"

namespace clrsampler {

class PerfettoWriter : public ProfileWriter {
 public:
  absl::Status Write(const ProfileModel& model, const OutputSink& sink) const override;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_PERFETTO_H_
