// The machine code of a profile as a jitdump, so that `perf inject --jit` and other readers of that format have its
// names, lines and instructions for a process that wrote no jitdump itself.
//
// The format: formats/jit/jitdump_parser.h. Debug information and unwind data of each body come before its code. A
// range without a line has line 0, as in DWARF; the last entry stands at the end of the body, because perf ends its
// table there.
//
// Stamps are those of the monotonic clock. A body counts from the beginning of the recording, since code at a place
// where nothing else was seen was there before its first sample, too. A body in place of others counts from its first
// sample. Where the profile does not know the clock, stamps are so small that bodies count for all samples of perf.
#ifndef CLRSAMPLER_OUTPUT_JITDUMP_PROFILE_H_
#define CLRSAMPLER_OUTPUT_JITDUMP_PROFILE_H_

#include "output/profile_writer.h"

namespace clrsampler {

class JitdumpProfileWriter : public ProfileWriter {
 public:
  // FailedPrecondition: the profile has no machine code, or that of several processes or machines.
  absl::Status Write(const ProfileModel& model, const OutputSink& sink) const override;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_JITDUMP_PROFILE_H_
