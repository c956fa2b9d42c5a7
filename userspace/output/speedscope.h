// The format of speedscope.app: a graph for each process.
//
// Source: src/lib/file-format-spec.ts of jlfwong/speedscope, "sampled" profiles. Stacks of a process are in the order
// of the model's tree, with equal ones added up: speedscope's first view, which shows stacks in the order of the file,
// is a flame graph then. In the order of time it would show the threads of a process mixed, and a million stacks no
// browser opens.
#ifndef CLRSAMPLER_OUTPUT_SPEEDSCOPE_H_
#define CLRSAMPLER_OUTPUT_SPEEDSCOPE_H_

#include "output/profile_writer.h"

namespace clrsampler {

class SpeedscopeWriter : public ProfileWriter {
 public:
  absl::Status Write(const ProfileModel& model, const OutputSink& sink) const override;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_SPEEDSCOPE_H_
