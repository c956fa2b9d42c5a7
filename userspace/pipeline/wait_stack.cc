#include "pipeline/wait_stack.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "profile/wait_kind.h"

namespace clrsampler {

FrameId WaitStack::Mark(absl::string_view text) {
  return frames_.Intern(Frame{FrameKind::kMark, NameSource::kNone, absl::StrCat("[", text, "]"), "", ""});
}

std::string WaitStack::WakerText(const ObservedWait& wait) {
  const bool own = wait.waker_tgid == wait.process.tgid;
  std::string text = absl::StrCat(own ? "woken by thread " : "woken by ", wait.waker_comm);
  if (waker_names_ == WakerNames::kExact) return own ? text : absl::StrCat(text, "-", wait.waker_tgid);
  if (known_wakers_.size() < kMostWakerNames) known_wakers_.insert(text);
  if (known_wakers_.contains(text)) return text;
  return own ? "woken by another thread" : "woken by another process";
}

void WaitStack::AppendWaker(const ObservedWait& wait) {
  if (wait.by_interrupt) {
    stack_.push_back(Mark("woken by an interrupt"));
    return;
  }
  if (wait.waker_tid == 0) return;
  stack_.push_back(Mark(WakerText(wait)));
  for (auto frame = wait.waker_frames.rbegin(); frame != wait.waker_frames.rend(); ++frame) {
    if (frames_.at(*frame).kind != FrameKind::kKernel) stack_.push_back(*frame);
  }
}

std::span<const FrameId> WaitStack::Of(const ObservedWait& wait) {
  main_loop_.Check();
  stack_.assign(wait.frames.begin(), wait.frames.end());
  stack_.push_back(Mark(WaitKindText(wait.kind)));
  if (waker_names_ != WakerNames::kNone && wait.kind != WaitKind::kRunnable) AppendWaker(wait);
  return stack_;
}

FrameId WaitStack::ShorterThan(uint64_t min_wait_ns) {
  main_loop_.Check();
  return Mark(absl::StrCat("waits shorter than ", absl::FormatDuration(absl::Nanoseconds(min_wait_ns))));
}

FrameId WaitStack::NotTold() { return Mark("waits not told"); }

}  // namespace clrsampler
