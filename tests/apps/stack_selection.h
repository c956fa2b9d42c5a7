// Makes small recordings of stacks out of large ones, for tests/testdata/stacks.
#ifndef CLRSAMPLER_TESTS_APPS_STACK_SELECTION_H_
#define CLRSAMPLER_TESTS_APPS_STACK_SELECTION_H_

#include <cstddef>

#include "unwind/stack_recording.h"

namespace clrsampler {

// As a recording run has it.
constexpr uint32_t kRecordedMaxFrames = 512;

// Not complete, or with a frame whose caller is in doubt.
bool IsDoubtful(const UserStack& stack);

// Walks a record of `recording` with the answers in it; an empty stack for a record that can't be parsed.
UserStack WalkRecorded(const StackRecording& recording, const RecordedStack& stack);

enum class StackChoice { kAny, kClean, kDoubtful };

// At most `count` stacks, those that differ most from each other in how their frames are found, smaller ones first
// where they show the same; fewer when the rest shows nothing new. Only what these need is kept:
//   - answers that they ask for, and code of the functions that they stand in, up to where a leaf looks;
//   - user words: no kernel addresses, no snapshots. Words that read as text are zeroed, and all behind the last one
//   that
//     matters: somebody's paths and environment are not for a repository.
// Each stack comes out of the result as it was recorded; those that do not any more, because code changed under the
// recording, are not chosen.
StackRecording SelectStacks(const StackRecording& recording, size_t count, StackChoice choice);

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_APPS_STACK_SELECTION_H_
