// The parts of a stack of a recording of waits: the functions, a mark of what was waited for, and who ended it.
#ifndef CLRSAMPLER_OUTPUT_WAIT_PARTS_H_
#define CLRSAMPLER_OUTPUT_WAIT_PARTS_H_

#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "symbols/frame.h"

namespace clrsampler {

inline constexpr absl::string_view kRunning = "running";  // the kind of a stack without such a mark

// Views of the table's frames and of the stack.
struct WaitParts {
  absl::string_view kind;                    // WaitKindText, "waits shorter than 1ms", or kRunning
  std::span<const FrameId> functions;        // outermost first
  absl::string_view waker;                   // "woken by thread worker"; empty: not asked for, or nobody
  std::span<const FrameId> waker_functions;  // innermost first
};
WaitParts DivideWait(const FrameTable& frames, std::span<const FrameId> stack);

// Whether a mark, "[monitor]", says what was waited for.
bool IsWaitMark(absl::string_view text);

bool HasManaged(const FrameTable& frames, std::span<const FrameId> stack);

// The program's own method that is nearest to the leaf, else the nearest managed one, else the nearest function.
std::string OwnMethod(const FrameTable& frames, std::span<const FrameId> innermost_first);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_WAIT_PARTS_H_
