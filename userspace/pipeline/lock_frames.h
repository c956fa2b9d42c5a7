// Tells the part of a stack that belongs to the runtime's managed methods that wait for a lock.
//
// Pure. Return addresses are looked for one after the other, from the stack pointer on: a copy that an earlier call has
// left makes a range shorter and never longer.
#ifndef CLRSAMPLER_PIPELINE_LOCK_FRAMES_H_
#define CLRSAMPLER_PIPELINE_LOCK_FRAMES_H_

#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "clr/memory/monitor_reader.h"

namespace clrsampler {

struct NamedFrame {
  uint64_t address = 0;  // as sampled or returned to
  absl::string_view name;
  bool managed = true;
};

// The method that enters a lock, of a thread that waits for one: the innermost managed one that is no part of the lock.
// Empty: none is seen.
absl::string_view EnteringMethod(std::span<const NamedFrame> frames);

// Whether the innermost managed methods wait for a lock; `frames` is leaf first.
bool WaitsInLock(std::span<const NamedFrame> frames);

// Whether such a wait is for the monitor of an object, and not for a System.Threading.Lock.
bool EntersMonitor(std::span<const NamedFrame> frames);

// `words`: the stack from `stack_pointer` on. Empty ranges: it waits in no such method, or its return addresses are not
// where they should be.
WaitFrames FramesOfLockWait(std::span<const NamedFrame> frames, uint64_t stack_pointer,
                            std::span<const uint64_t> words);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_LOCK_FRAMES_H_
