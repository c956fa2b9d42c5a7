// The format of google/pprof: `go tool pprof`, and most profiling services. docs/formats.md says what goes where.
#ifndef CLRSAMPLER_OUTPUT_PPROF_H_
#define CLRSAMPLER_OUTPUT_PPROF_H_

#include "output/profile_writer.h"

namespace clrsampler {

// Samples of equal stack, thread and state are one, with their values added up: the format has no times.
class PprofWriter : public ProfileWriter {
 public:
  absl::Status Write(const ProfileModel& model, const OutputSink& sink) const override;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_PPROF_H_
