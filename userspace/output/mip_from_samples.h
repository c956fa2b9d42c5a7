// Machine IR Profiles of what was sampled, for one image; docs/mip.md says what each field then means.
//
// One recording counts as one run of an instrumented program. The order of the first samples stands for that of the
// first calls, and samples for calls, so that profiles of many recordings and hosts add up as those of programs do.
#ifndef CLRSAMPLER_OUTPUT_MIP_FROM_SAMPLES_H_
#define CLRSAMPLER_OUTPUT_MIP_FROM_SAMPLES_H_

#include <utility>

#include "output/profile_writer.h"

namespace clrsampler {

class MipFromSamplesWriter : public ProfileWriter {
 public:
  explicit MipFromSamplesWriter(WriterOptions options) : options_(std::move(options)) {}
  absl::Status Write(const ProfileModel& model, const OutputSink& sink) const override;

 private:
  const WriterOptions options_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_MIP_FROM_SAMPLES_H_
