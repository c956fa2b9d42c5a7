#include "output/wait_parts.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "profile/library_methods.h"
#include "profile/wait_kind.h"

namespace clrsampler {
namespace {

// The text between brackets. Empty: there is none.
absl::string_view Unbracketed(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) return {};
  return text;
}

absl::string_view MarkText(const Frame& frame) {
  return frame.kind == FrameKind::kMark ? Unbracketed(frame.text) : absl::string_view();
}

// Whether the text between the brackets tells of a wait.
bool SaysWait(absl::string_view text) { return absl::StartsWith(text, "waits ") || WaitKindOf(text).has_value(); }

}  // namespace

bool IsWaitMark(absl::string_view text) { return SaysWait(Unbracketed(text)); }

WaitParts DivideWait(const FrameTable& frames, std::span<const FrameId> stack) {
  for (size_t i = 0; i < stack.size(); ++i) {
    const absl::string_view text = MarkText(frames.at(stack[i]));
    if (text.empty() || !SaysWait(text)) continue;
    WaitParts parts{text, stack.first(i), {}, {}};
    if (i + 1 < stack.size()) {
      parts.waker = MarkText(frames.at(stack[i + 1]));
      parts.waker_functions = stack.subspan(i + 2);
    }
    return parts;
  }
  return {kRunning, stack, {}, {}};
}

bool HasManaged(const FrameTable& frames, std::span<const FrameId> stack) {
  return std::any_of(stack.begin(), stack.end(), [&](FrameId id) { return IsManaged(frames.at(id)); });
}

std::string OwnMethod(const FrameTable& frames, std::span<const FrameId> innermost_first) {
  const Frame* managed = nullptr;
  for (const FrameId id : innermost_first) {
    const Frame& frame = frames.at(id);
    if (!IsManaged(frame)) continue;
    if (!IsOfLibraries(frame.text)) return frame.text;
    if (managed == nullptr) managed = &frame;
  }
  if (managed != nullptr) return managed->text;
  return innermost_first.empty() ? "" : frames.at(innermost_first.front()).text;
}

}  // namespace clrsampler
