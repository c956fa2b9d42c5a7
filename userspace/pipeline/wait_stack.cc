#include "pipeline/wait_stack.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "profile/wait_kind.h"

namespace clrsampler {

FrameId WaitStack::Mark(absl::string_view text) {
  return frames_.Intern(Frame{FrameKind::kMark, NameSource::kNone, absl::StrCat("[", text, "]"), "", ""});
}

void WaitStack::AppendWaker(const ObservedWait& wait) {
  if (wait.by_interrupt) {
    stack_.push_back(Mark("woken by an interrupt"));
    return;
  }
  if (wait.waker_tid == 0) return;
  stack_.push_back(Mark(wait.waker_tgid == wait.process.tgid
                            ? absl::StrCat("woken by thread ", wait.waker_comm)
                            : absl::StrCat("woken by ", wait.waker_comm, "-", wait.waker_tgid)));
  for (auto frame = wait.waker_frames.rbegin(); frame != wait.waker_frames.rend(); ++frame) {
    if (frames_.at(*frame).kind != FrameKind::kKernel) stack_.push_back(*frame);
  }
}

std::span<const FrameId> WaitStack::Of(const ObservedWait& wait, bool waker) {
  main_loop_.Check();
  stack_.assign(wait.frames.begin(), wait.frames.end());
  stack_.push_back(Mark(WaitKindText(wait.kind)));
  if (waker && wait.kind != WaitKind::kRunnable) AppendWaker(wait);
  return stack_;
}

FrameId WaitStack::ShorterThan(uint64_t min_wait_ns) {
  main_loop_.Check();
  return Mark(absl::StrCat("waits shorter than ", absl::FormatDuration(absl::Nanoseconds(min_wait_ns))));
}

FrameId WaitStack::NotTold() { return Mark("waits not told"); }

}  // namespace clrsampler
