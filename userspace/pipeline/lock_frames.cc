#include "pipeline/lock_frames.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "profile/method_text.h"

namespace clrsampler {
namespace {

// The method that waits for a Lock, for all callers that enter it. It is not inlined since 9, the first version that
// has it.
constexpr absl::string_view kLockWaits = "System.Threading.Lock.TryEnterSlow";
constexpr absl::string_view kMonitorClass = "System.Threading.Monitor.";
// The last one enters a monitor again when its pulse has come.
constexpr absl::string_view kClasses[] = {"System.Threading.Lock.", kMonitorClass, "System.Threading.Condition."};

// Methods that enter a lock however long it takes, and are never inlined. The last one does so again behind a pulse.
// Callers without one of these try to enter for some time.
constexpr absl::string_view kNoLimit[] = {"System.Threading.Lock.Enter", "System.Threading.Monitor.Enter",
                                          "System.Threading.Condition."};

bool Contains(const NamedFrame& frame, absl::string_view text) { return HasMethod(frame.name, text); }

// The index of kLockWaits; frames.size(): there is none.
size_t WaitingFrame(std::span<const NamedFrame> frames) {
  return static_cast<size_t>(
      std::find_if(frames.begin(), frames.end(), [](const NamedFrame& frame) { return Contains(frame, kLockWaits); }) -
      frames.begin());
}

// The index of the method that enters the lock.
size_t EnteringFrame(std::span<const NamedFrame> frames) {
  size_t index = WaitingFrame(frames);
  const auto is_part = [](const NamedFrame& frame) {
    return std::any_of(std::begin(kClasses), std::end(kClasses),
                       [&](absl::string_view name) { return Contains(frame, name); });
  };
  while (index < frames.size() && is_part(frames[index])) ++index;
  return index;
}

// A time limit, or no sign that there is none.
bool MayGiveUp(std::span<const NamedFrame> frames) {
  const size_t begin = WaitingFrame(frames), end = EnteringFrame(frames);
  return std::none_of(frames.begin() + static_cast<ptrdiff_t>(begin), frames.begin() + static_cast<ptrdiff_t>(end),
                      [](const NamedFrame& frame) {
                        return std::any_of(std::begin(kNoLimit), std::end(kNoLimit),
                                           [&](absl::string_view name) { return Contains(frame, name); });
                      });
}

}  // namespace

bool WaitsInLock(std::span<const NamedFrame> frames) { return WaitingFrame(frames) < frames.size(); }

absl::string_view EnteringMethod(std::span<const NamedFrame> frames) {
  size_t index = WaitsInLock(frames) ? EnteringFrame(frames) : 0;
  while (index < frames.size() && (!frames[index].managed || Contains(frames[index], kMonitorClass))) ++index;
  return index < frames.size() ? frames[index].name : absl::string_view();
}

bool EntersMonitor(std::span<const NamedFrame> frames) {
  const size_t begin = WaitingFrame(frames), end = EnteringFrame(frames);
  return std::any_of(frames.begin() + static_cast<ptrdiff_t>(begin), frames.begin() + static_cast<ptrdiff_t>(end),
                     [](const NamedFrame& frame) { return Contains(frame, kMonitorClass); });
}

WaitFrames FramesOfLockWait(std::span<const NamedFrame> frames, uint64_t stack_pointer,
                            std::span<const uint64_t> words) {
  if (!WaitsInLock(frames)) return {};
  const size_t caller = EnteringFrame(frames);
  size_t at = 0;
  const auto next_place = [&](size_t index) -> std::optional<uint64_t> {
    while (at < words.size() && words[at] != frames[index].address) ++at;
    if (at == words.size()) return std::nullopt;
    return stack_pointer + sizeof(uint64_t) * at++;
  };
  WaitFrames found;
  found.monitor = EntersMonitor(frames);
  found.limited = MayGiveUp(frames);
  for (size_t i = 1; i <= caller + 1 && i < frames.size(); ++i) {
    const std::optional<uint64_t> place = next_place(i);
    if (!place) return {};
    if (i == caller) found.inner = found.outer = {stack_pointer, *place};
    if (i == caller + 1) found.outer.end = *place;
  }
  return found;
}

}  // namespace clrsampler
