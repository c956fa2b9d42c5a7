// The tables of a run -> the model that writers take. `sources`: the files that lines of frames are in. `code`: nullptr
// where it was not kept.
#ifndef CLRSAMPLER_PROFILE_RUN_MODEL_H_
#define CLRSAMPLER_PROFILE_RUN_MODEL_H_

#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"
#include "os/clock.h"
#include "profile/code_log.h"
#include "profile/event_log.h"
#include "profile/sample_log.h"
#include "profile/stack_table.h"
#include "symbols/frame.h"
#include "symbols/source_files.h"

namespace clrsampler {

// Counted stacks only. The labels of stacks, which say the process, become the names of its processes; ids, threads and
// times are not there. All that folded text has, at next to no cost.
absl::StatusOr<ProfileModel> CountedRunModel(const FrameTable& frames, const StackTable& stacks, ProfileMeta meta,
                                             const SourceFiles& sources = SourceFiles());

// With each sample. `began`: time 0 of the model; earlier samples (of events that were under way) count as of then.
absl::StatusOr<ProfileModel> SampledRunModel(const FrameTable& frames, const StackTable& stacks,
                                             const SampleLog& samples, MonotonicTime began, ProfileMeta meta,
                                             const SourceFiles& sources = SourceFiles(), const CodeLog* code = nullptr,
                                             const EventLog& events = EventLog());

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_RUN_MODEL_H_
