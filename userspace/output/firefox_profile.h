// The file of the Firefox Profiler (profiler.firefox.com): a lane for each thread, over time.
//
// Source: src/types/profile.ts and docs-developer/CHANGELOG-formats.md of firefox-devtools/profiler, version 60 of the
// processed profile: the first one whose threads share their tables, as those of a model do. Newer viewers bring it up
// to their own version as they read it. The file is compressed.
//
// Samples of a thread are in the order of their times. Samples without a time stand at the end of the recording.
#ifndef CLRSAMPLER_OUTPUT_FIREFOX_PROFILE_H_
#define CLRSAMPLER_OUTPUT_FIREFOX_PROFILE_H_

#include "output/profile_writer.h"

namespace clrsampler {

class FirefoxProfileWriter : public ProfileWriter {
 public:
  absl::Status Write(const ProfileModel& model, const OutputSink& sink) const override;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_FIREFOX_PROFILE_H_
